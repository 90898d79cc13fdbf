//! The runtime of the test's own process.

use magpie_codegen_cpu::Runtime;
use magpie_diag::Span;
use magpie_rt::typeinfo::{MpRtTypeInfo, TypeInfos};
use magpie_types::abi::{RtFn, object_layout};
use magpie_types::{TypeCtx, TypeId, TypeKind};
use std::ffi::CString;

/// What code of a module with these types needs. What it hands out is never freed.
pub(crate) struct Process<'a>(pub(crate) &'a TypeCtx);

impl Runtime for Process<'_> {
    fn function(&self, f: RtFn) -> *const u8 {
        magpie_rt::symbol_address(f)
    }

    fn str_object(&mut self, text: &str) -> *const u8 {
        let image = object_layout::str_literal(text);
        let words = image.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        Vec::leak(words.collect::<Vec<u64>>()).as_ptr().cast()
    }

    fn c_string(&mut self, text: &str) -> *const u8 {
        CString::new(text).unwrap().into_raw() as *const u8
    }

    fn type_info(&mut self, ty: TypeId, object: u32) -> *const u8 {
        let infos = TypeInfos::new(self.0);
        let of_object = match (object, self.0.kind(ty)) {
            (1, _) => infos.for_object(ty),
            (2, TypeKind::Struct(s)) => {
                let fields = self.0.struct_def(s).fields.iter();
                Some(infos.for_callable(&fields.map(|f| f.ty).collect::<Vec<_>>()))
            }
            _ => None,
        };
        let info: *const MpRtTypeInfo = of_object.unwrap_or_else(|| infos.for_value(ty));
        info.cast()
    }

    fn describe(&self, _: Span) -> Option<String> {
        None
    }
}
