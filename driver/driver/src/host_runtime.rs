//! What machine code needs from this process: addresses of runtime functions, literals, type
//! descriptions.

use magpie_codegen_cpu::Runtime;
use magpie_diag::{SourceMap, Span};
use magpie_rt::typeinfo::{MpRtTypeInfo, TypeInfos};
use magpie_types::abi::{RtFn, object_layout};
use magpie_types::{TypeCtx, TypeId, TypeKind};
use rustc_hash::FxHashMap;
use std::ffi::CString;

/// The runtime of this process. What it hands out lives as long as the process, because code that
/// holds the addresses does: a program is compiled once and then run to the end.
pub(crate) struct ProcessRuntime<'a> {
    types: &'a TypeCtx,
    sources: &'a SourceMap,
    infos: Option<TypeInfos<'a>>,
    str_objects: FxHashMap<String, *const u8>,
    c_strings: FxHashMap<String, *const u8>,
}

impl<'a> ProcessRuntime<'a> {
    /// For code of a module with these types.
    pub(crate) fn new(types: &'a TypeCtx, sources: &'a SourceMap) -> ProcessRuntime<'a> {
        ProcessRuntime {
            types,
            sources,
            infos: None,
            str_objects: FxHashMap::default(),
            c_strings: FxHashMap::default(),
        }
    }
}

impl Runtime for ProcessRuntime<'_> {
    fn function(&self, f: RtFn) -> *const u8 {
        magpie_rt::symbol_address(f)
    }

    fn str_object(&mut self, text: &str) -> *const u8 {
        if let Some(&address) = self.str_objects.get(text) {
            return address;
        }
        let image = object_layout::str_literal(text);
        // 64-bit words, for the alignment of the header.
        let words = image.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let words: &'static [u64] = Vec::leak(words.collect());
        let address = words.as_ptr().cast();
        self.str_objects.insert(text.to_string(), address);
        address
    }

    fn c_string(&mut self, text: &str) -> *const u8 {
        if let Some(&address) = self.c_strings.get(text) {
            return address;
        }
        // What stands behind a NUL could not be read through the address.
        let bytes = text.split('\0').next().unwrap_or_default();
        let address = CString::new(bytes).unwrap_or_default().into_raw() as *const u8;
        self.c_strings.insert(text.to_string(), address);
        address
    }

    fn type_info(&mut self, ty: TypeId, object: u32) -> *const u8 {
        let infos = self.infos.get_or_insert_with(|| TypeInfos::new(self.types));
        let of_object = match (object, self.types.kind(ty)) {
            (1, _) => infos.for_object(ty),
            (2, TypeKind::Struct(captures)) => {
                let fields = &self.types.struct_def(captures).fields;
                let types: Vec<TypeId> = fields.iter().map(|field| field.ty).collect();
                Some(infos.for_callable(&types))
            }
            _ => None,
        };
        let info: *const MpRtTypeInfo = of_object.unwrap_or_else(|| infos.for_value(ty));
        info.cast()
    }

    fn describe(&self, span: Span) -> Option<String> {
        self.sources.describe(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn literals_are_interned_and_aligned() {
        let (types, sources) = (TypeCtx::new(), SourceMap::new());
        let mut runtime = ProcessRuntime::new(&types, &sources);
        let hello = runtime.str_object("hello");
        assert_eq!(hello, runtime.str_object("hello"));
        assert_ne!(hello, runtime.str_object(""));
        assert_eq!(hello as usize % 8, 0);
        let place = runtime.c_string("a.mp:1:2");
        assert_eq!(place, runtime.c_string("a.mp:1:2"));
        // SAFETY: the address is that of a C string that lives as long as the process.
        let text = unsafe { CStr::from_ptr(place.cast()) };
        assert_eq!(text, c"a.mp:1:2");
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(runtime.c_string("a\0b").cast()) }, c"a");
    }
}
