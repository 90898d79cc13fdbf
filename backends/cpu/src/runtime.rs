//! What generated code needs from the process it runs in.

use magpie_diag::Span;
use magpie_types::TypeId;
use magpie_types::abi::RtFn;

/// Addresses that are embedded in generated code, and places for run-time messages. All addresses
/// must stay valid as long as the code.
pub trait Runtime {
    /// The address of a runtime function.
    fn function(&self, f: RtFn) -> *const u8;
    /// The address of an immortal `Str` object with this text.
    fn str_object(&mut self, text: &str) -> *const u8;
    /// The address of the bytes of a text, NUL-terminated.
    fn c_string(&mut self, text: &str) -> *const u8;
    /// The address of the run-time description of a type. `object` is that of `typeinfo.addr`: 0
    /// for its values, 1 for the payload of its objects, 2 for the payload of a callable that
    /// captures the fields of the struct.
    fn type_info(&mut self, ty: TypeId, object: u32) -> *const u8;
    /// `file:line:column` of a place, if it has source.
    fn describe(&self, span: Span) -> Option<String>;
}
