//! Types and their definitions.

use super::lexer::Kind;
use super::{MAX_TYPE_DEPTH, Parsed, Parser};
use crate::print::TYPE_WORDS;
use magpie_types::{Field, PrimType, RefMode, TypeId, TypeKind, Variant, fixed};

impl<'a> Parser<'a> {
    pub(super) fn ty(&mut self) -> Parsed<TypeId> {
        self.nested_type(0)
    }

    fn nested_type(&mut self, depth: usize) -> Parsed<TypeId> {
        let tok = self.tok;
        if depth > MAX_TYPE_DEPTH {
            let message = format!("types nest more than {MAX_TYPE_DEPTH} levels deep here");
            return Err(self.error(tok, message));
        }
        match tok.kind {
            Kind::Word => {}
            Kind::Str => {
                let name = self.string()?;
                return match self.types_by_name.get(name.as_str()) {
                    Some(&ty) => Ok(ty),
                    None => Err(self.error(tok, format!("type `{name}` is not defined"))),
                };
            }
            _ => return Err(self.expected("a type")),
        }
        let word = self.slice(tok);
        self.bump();
        if let Some(p) = PrimType::from_name(word) {
            return Ok(p.id());
        }
        let deeper = depth + 1;
        let kind = match word {
            "borrow" => TypeKind::Ref(RefMode::Borrow, self.nested_type(deeper)?),
            "mutborrow" => TypeKind::Ref(RefMode::MutBorrow, self.nested_type(deeper)?),
            "shared" => TypeKind::Ref(RefMode::Shared, self.nested_type(deeper)?),
            "weak" => TypeKind::Ref(RefMode::Weak, self.nested_type(deeper)?),
            "Array" => TypeKind::Array(self.one_argument(deeper)?),
            "TOption" => TypeKind::Option(self.one_argument(deeper)?),
            "gpu.TBuffer" => TypeKind::Buffer(self.one_argument(deeper)?),
            "mlx.TArray" => TypeKind::MlxArray(self.one_argument(deeper)?),
            "rawptr" => TypeKind::RawPtr(self.one_argument(deeper)?),
            "Map" => {
                let (k, v) = self.two_arguments(deeper)?;
                TypeKind::Map(k, v)
            }
            "TResult" => {
                let (t, e) = self.two_arguments(deeper)?;
                TypeKind::Result(t, e)
            }
            "shared_array" => {
                let (n, t) = self.array_arguments(deeper)?;
                TypeKind::SharedArray(t, n)
            }
            "local_array" => {
                let (n, t) = self.array_arguments(deeper)?;
                TypeKind::LocalArray(t, n)
            }
            "vec" => self.vector()?,
            "TCallable" => {
                self.expect(b'<')?;
                let at = self.tok;
                let name = self.name("the name of a signature")?;
                let Some(&sig) = self.sigs_by_name.get(&name) else {
                    return Err(self.error(at, format!("signature `{name}` is not defined")));
                };
                self.expect(b'>')?;
                TypeKind::Callable(sig)
            }
            "Str" => return Ok(fixed::STR),
            "TStrBuilder" => return Ok(fixed::STR_BUILDER),
            "gpu.TDevice" => return Ok(fixed::GPU_DEVICE),
            "gpu.TFence" => return Ok(fixed::GPU_FENCE),
            "gpu.TProfileSession" => return Ok(fixed::GPU_PROFILE_SESSION),
            "gpu.TKernel" => return Ok(fixed::GPU_KERNEL),
            "mlx.nn.TLayerHandle" => return Ok(fixed::MLX_LAYER),
            "mlx.optim.TOptimizerHandle" => return Ok(fixed::MLX_OPTIMIZER),
            _ => {
                return match self.types_by_name.get(word) {
                    Some(&ty) if !TYPE_WORDS.contains(&word) => Ok(ty),
                    _ => Err(self.error(tok, format!("type `{word}` is not defined"))),
                };
            }
        };
        Ok(self.m.types.intern(kind))
    }

    fn one_argument(&mut self, depth: usize) -> Parsed<TypeId> {
        self.expect(b'<')?;
        let t = self.nested_type(depth)?;
        self.expect(b'>')?;
        Ok(t)
    }

    fn two_arguments(&mut self, depth: usize) -> Parsed<(TypeId, TypeId)> {
        self.expect(b'<')?;
        let a = self.nested_type(depth)?;
        self.expect(b',')?;
        let b = self.nested_type(depth)?;
        self.expect(b'>')?;
        Ok((a, b))
    }

    fn array_arguments(&mut self, depth: usize) -> Parsed<(u32, TypeId)> {
        self.expect(b'<')?;
        let at = self.tok;
        let len = self.number_u32("the number of elements")?;
        if len == 0 {
            return Err(self.error(at, "an array has at least 1 element"));
        }
        self.expect(b',')?;
        let t = self.nested_type(depth)?;
        self.expect(b'>')?;
        Ok((len, t))
    }

    fn vector(&mut self) -> Parsed<TypeKind> {
        self.expect(b'<')?;
        let at = self.tok;
        let component = self.nested_type(MAX_TYPE_DEPTH)?;
        let Some(p) = self.m.types.prim(component).filter(|&p| p != PrimType::Unit) else {
            return Err(self.error(at, "the components of a vector are scalars"));
        };
        self.expect(b',')?;
        let at = self.tok;
        let lanes = self.number_u32("the number of components")?;
        let is_wide = lanes.is_power_of_two() && lanes <= 64;
        if !(2..=4).contains(&lanes) && !is_wide {
            return Err(self.error(at, "a vector has 2, 3 or 4 components, or 8, 16, 32 or 64"));
        }
        self.expect(b'>')?;
        Ok(TypeKind::Vec(p, lanes as u8))
    }

    // ----- definitions -----

    /// `value struct NAME { … }` and its like. The first pass declared the name.
    pub(super) fn type_definition(&mut self) -> Parsed<()> {
        self.bump();
        let is_struct = self.is_word("struct");
        if !is_struct && !self.is_word("enum") {
            return Err(self.expected("`struct` or `enum`"));
        }
        self.bump();
        let name = self.name("the name of the type")?;
        let ty = self.types_by_name.get(&name).map(|&ty| self.m.types.kind(ty));
        self.expect(b'{')?;
        if is_struct {
            let fields = self.fields()?;
            if let Some(TypeKind::Struct(id)) = ty {
                self.m.types.define_struct(id, fields);
            }
        } else {
            let variants = self.variants()?;
            if let Some(TypeKind::Enum(id)) = ty {
                self.m.types.define_enum(id, variants);
            }
        }
        Ok(())
    }

    /// `name: type, … }`.
    fn fields(&mut self) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        while !self.eat(b'}') {
            if !fields.is_empty() {
                self.expect(b',')?;
            }
            let name = self.name("the name of a field, or `}`")?.into_owned();
            self.expect(b':')?;
            let ty = self.ty()?;
            fields.push(Field { name, ty });
        }
        Ok(fields)
    }

    /// `Name, Name { fields }, … }`.
    fn variants(&mut self) -> Parsed<Vec<Variant>> {
        let mut variants = Vec::new();
        while !self.eat(b'}') {
            if !variants.is_empty() {
                self.expect(b',')?;
            }
            let name = self.name("the name of a variant, or `}`")?.into_owned();
            let fields = if self.eat(b'{') { self.fields()? } else { Vec::new() };
            variants.push(Variant { name, fields });
        }
        Ok(variants)
    }

    /// `sig NAME(types) -> type`. The first pass declared the name.
    pub(super) fn sig_definition(&mut self) -> Parsed<()> {
        self.bump();
        let name = self.name("the name of the signature")?;
        self.expect(b'(')?;
        let mut params = Vec::new();
        while !self.eat(b')') {
            if !params.is_empty() {
                self.expect(b',')?;
            }
            params.push(self.ty()?);
        }
        let ret = self.result_type()?;
        if let Some(&id) = self.sigs_by_name.get(&name) {
            self.m.types.set_sig(id, params, ret);
        }
        Ok(())
    }

    /// `-> type`, or nothing for `unit`.
    pub(super) fn result_type(&mut self) -> Parsed<TypeId> {
        if self.tok.kind != Kind::Arrow {
            return Ok(fixed::UNIT);
        }
        self.bump();
        self.ty()
    }
}
