//! [`Module`]: the functions of a build with their types and texts.

use crate::{FnId, MpirFn, StrId};
use magpie_types::TypeCtx;
use rustc_hash::FxHashMap;

/// All functions of a build.
#[derive(Clone, Debug)]
pub struct Module {
    /// Every type.
    pub types: TypeCtx,
    /// Every function; index by [`FnId`].
    pub fns: Vec<MpirFn>,
    /// Names of the source files, by [`magpie_diag::FileId`].
    pub files: Vec<String>,
    strings: Vec<String>,
    interned: FxHashMap<String, StrId>,
}

impl Default for Module {
    fn default() -> Self {
        Module::new()
    }
}

impl Module {
    /// An empty module: it has the built-in types only.
    pub fn new() -> Module {
        Module::with_types(TypeCtx::new())
    }

    /// A module of these types that has nothing else yet.
    pub fn with_types(types: TypeCtx) -> Module {
        Module {
            types,
            fns: Vec::new(),
            files: Vec::new(),
            strings: Vec::new(),
            interned: FxHashMap::default(),
        }
    }

    /// Adds a function.
    pub fn add_fn(&mut self, f: MpirFn) -> FnId {
        let id = FnId::new(self.fns.len());
        self.fns.push(f);
        id
    }

    /// A function.
    pub fn func(&self, id: FnId) -> &MpirFn {
        &self.fns[id.index()]
    }

    /// Finds a function by its full name.
    pub fn find_fn(&self, name: &str) -> Option<FnId> {
        self.fns.iter().position(|f| f.name == name).map(FnId::new)
    }

    /// Every function id in order.
    pub fn fn_ids(&self) -> impl Iterator<Item = FnId> + use<> {
        (0..self.fns.len()).map(FnId::new)
    }

    /// The id of a text.
    pub fn intern_str(&mut self, text: &str) -> StrId {
        if let Some(&id) = self.interned.get(text) {
            return id;
        }
        let id = StrId::new(self.strings.len());
        self.strings.push(text.to_string());
        self.interned.insert(text.to_string(), id);
        id
    }

    /// The text of an id.
    pub fn str(&self, id: StrId) -> &str {
        &self.strings[id.index()]
    }

    /// Number of texts; bound of [`StrId`]s.
    pub fn num_strings(&self) -> usize {
        self.strings.len()
    }

    /// Every text in id order.
    pub fn strings(&self) -> impl Iterator<Item = (StrId, &str)> {
        self.strings.iter().enumerate().map(|(i, s)| (StrId::new(i), s.as_str()))
    }
}
