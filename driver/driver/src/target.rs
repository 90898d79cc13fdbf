//! The machine that programs are built for: this one.

macro_rules! triples {
    ($($arch:literal $os:literal $env:literal => $triple:literal;)*) => {
        $(
            #[cfg(all(target_arch = $arch, target_os = $os, target_env = $env))]
            /// The triple of this machine, as Rust names it.
            pub const TRIPLE: &str = $triple;
        )*
        #[cfg(not(any($(all(target_arch = $arch, target_os = $os, target_env = $env)),*)))]
        /// A machine without a name of its own here.
        pub const TRIPLE: &str = "unknown";
    };
}

triples! {
    "x86_64" "linux" "gnu" => "x86_64-unknown-linux-gnu";
    "x86_64" "linux" "musl" => "x86_64-unknown-linux-musl";
    "aarch64" "linux" "gnu" => "aarch64-unknown-linux-gnu";
    "aarch64" "linux" "musl" => "aarch64-unknown-linux-musl";
    "x86_64" "macos" "" => "x86_64-apple-darwin";
    "aarch64" "macos" "" => "aarch64-apple-darwin";
}
