//! The kernel as the driver sees it: parameters, attributes, metadata; and the functions that it
//! calls.
//!
//! Parameters of a kernel are those of the kernel in order: a buffer is its address, a scalar is by value (a
//! bool as a byte), a value struct or vector is its bytes. The lengths of buffers follow, as `i64`.

use crate::emitter::{Emit, Emitter};
use crate::flavor::{Flavor, Space};
use crate::types::Shape;
use magpie_mpir::{Inst, Value, ValueDef};
use magpie_types::kernel::{KernelLayout, ParamLayout};
use magpie_types::{PrimType, TypeId, fixed};
use std::fmt::Write;

/// The format of metadata about places in the source, which LLVM drops without it.
const DEBUG_VERSION: &str = "!1 = !{i32 2, !\"Debug Info Version\", i32 3}\n";

impl Emitter<'_> {
    /// The head of a kernel, without attributes. Also gives parameters their values.
    pub(crate) fn kernel_head(&mut self) -> Emit<String> {
        let (f, layout) = (self.f, self.layout);
        let convention = match self.flavor {
            Flavor::Nvptx { .. } => "ptx_kernel",
            Flavor::Amdgcn { .. } => "amdgpu_kernel",
        };
        let mut params = Vec::new();
        for (param, &(v, ty)) in layout.params.iter().zip(&f.params) {
            let name = format!("%v{}", v.0);
            params.push(match param {
                ParamLayout::Buffer(_) => format!("{} {name}", self.flavor.pointer(Space::Global)),
                &ParamLayout::Scalar { size, .. } => match Shape::of(self.types, ty) {
                    Some(Shape { prim: PrimType::Bool, lanes: 1 }) => {
                        let _ = writeln!(self.prologue, "  {name} = icmp ne i8 %a{}, 0", v.0);
                        format!("i8 %a{}", v.0)
                    }
                    Some(shape) if shape.lanes == 1 => format!("{shape} {name}"),
                    // The pointer is the value's name, but for vectors, which are values.
                    shape => {
                        let align = self.types.layout(ty).align.max(1);
                        let pointer = match shape {
                            Some(_) => format!("%a{}", v.0),
                            None => name.clone(),
                        };
                        if let Some(shape) = shape {
                            let loaded = self.load_argument(&pointer, shape, align);
                            let _ = writeln!(
                                self.prologue,
                                "  {name} = bitcast {shape} {loaded} to {shape}"
                            );
                        }
                        let by = match self.flavor {
                            Flavor::Nvptx { .. } => "byval",
                            Flavor::Amdgcn { .. } => "byref",
                        };
                        let ty = self.flavor.pointer(Space::Argument);
                        format!("{ty} {by}([{size} x i8]) align {align} {pointer}")
                    }
                },
            });
        }
        for n in 0..layout.hidden.len() {
            params.push(format!("i64 %n{n}"));
        }
        Ok(format!("define {convention} void @{}({})", layout.entry, params.join(", ")))
    }

    /// The head of a function that kernels call: a buffer is its address, a scalar is by value, and
    /// the lengths of buffers that it needs follow.
    pub(crate) fn function_head(&mut self) -> Emit<String> {
        let (f, layout) = (self.f, self.layout);
        let mut params = Vec::new();
        for (param, &(v, ty)) in layout.params.iter().zip(&f.params) {
            params.push(match param {
                ParamLayout::Buffer(_) => {
                    format!("{} %v{}", self.flavor.pointer(Space::Global), v.0)
                }
                ParamLayout::Scalar { .. } => format!("{} %v{}", self.shape_of_type(ty)?, v.0),
            });
        }
        params.extend((0..layout.hidden.len()).map(|n| format!("i64 %n{n}")));
        let result = self.result_type(f.ret_ty)?;
        Ok(format!("define internal {result} @{}({})", layout.entry, params.join(", ")))
    }

    /// What a function with this result gives.
    fn result_type(&self, ty: TypeId) -> Emit<String> {
        Ok(match ty {
            fixed::UNIT => "void".to_string(),
            ty => self.shape_of_type(ty)?.to_string(),
        })
    }

    /// `call`.
    pub(crate) fn call_function(&mut self, i: Inst) -> Emit {
        let (f, functions) = (self.f, self.functions);
        let id = f.inst(i).func();
        let Some(callee) = functions.iter().find(|function| function.id == id) else {
            return Err(self.broken_at(i, "a function that the kernel does not carry"));
        };
        let mut args = Vec::new();
        let mut lengths = vec![String::new(); callee.layout.hidden.len()];
        for (n, param) in callee.layout.params.iter().enumerate() {
            let v = self.arg_value(i, n)?;
            args.push(match param {
                ParamLayout::Scalar { .. } => format!("{} {}", self.shape_of(v)?, self.value(v)?),
                ParamLayout::Buffer(buffer) => {
                    let hidden = callee.layout.hidden.iter().position(|h| h.buffer == buffer.index);
                    if let Some(at) = hidden {
                        lengths[at] = format!("i64 {}", self.buffer_length(i, v)?);
                    }
                    format!("{} {}", self.flavor.pointer(Space::Global), self.value(v)?)
                }
            });
        }
        args.append(&mut lengths);
        let result = self.result_type(callee.f.ret_ty)?;
        let call = format!("call {result} @{}({})", callee.layout.entry, args.join(", "));
        match callee.f.ret_ty {
            fixed::UNIT => crate::emitter::line!(self, "{call}"),
            _ => self.define(i, format_args!("{call}"))?,
        }
        Ok(())
    }

    /// The length of a buffer that an instruction names.
    pub(crate) fn buffer_length(&self, i: Inst, v: Value) -> Emit<String> {
        let buffer = match self.f.def(v) {
            ValueDef::Param(n) => self.layout.params.get(n as usize),
            ValueDef::Inst(_) | ValueDef::Const(_) => None,
        };
        match buffer {
            Some(ParamLayout::Buffer(buffer)) => self.hidden_length(buffer.index),
            Some(ParamLayout::Scalar { .. }) | None => {
                Err(self.broken_at(i, "an operand is no buffer"))
            }
        }
    }

    /// A value in the bytes of an argument, read at the start.
    fn load_argument(&mut self, pointer: &str, shape: Shape, align: u32) -> String {
        let (stored, ty) = (shape.stored(), self.flavor.pointer(Space::Argument));
        let raw = self.emit_at_start(format_args!("load {stored}, {ty} {pointer}, align {align}"));
        match stored == shape {
            true => raw.to_string(),
            false => {
                let zero = if shape.lanes == 1 { "0" } else { "zeroinitializer" };
                self.emit_at_start(format_args!("icmp ne {stored} {raw}, {zero}")).to_string()
            }
        }
    }

    /// `leaf.get`: a scalar or vector of an aggregate parameter.
    pub(crate) fn leaf_get(&mut self, i: Inst) -> Emit {
        let (v, leaf) = (self.arg_value(i, 0)?, self.f.inst(i).imm_lo());
        let ty = self.f.ty(v);
        let Some(&leaf) = self.types.leaves(ty).get(leaf as usize) else {
            return Err(self.broken_at(i, "a member that its parameter does not have"));
        };
        let shape = self.shape_of_type(leaf.ty)?;
        if Shape::of(self.types, ty).is_some() {
            let v = self.value(v)?;
            return self.define_as(i, shape, &v);
        }
        let align = crate::memory::alignment(self.types.layout(ty).align, leaf.offset);
        let pointer = self.flavor.pointer(Space::Argument);
        let at = self.emit_at_start(format_args!(
            "getelementptr inbounds i8, {pointer} %v{}, i64 {}",
            v.0, leaf.offset
        ));
        let loaded = self.load_argument(&at.to_string(), shape, align);
        self.define(i, format_args!("bitcast {shape} {loaded} to {shape}"))
    }

    /// The hidden length of a buffer parameter, by its position among them.
    fn hidden_length(&self, buffer: u32) -> Emit<String> {
        match self.layout.hidden.iter().position(|h| h.buffer == buffer) {
            Some(n) => Ok(format!("%n{n}")),
            None => Err(self.broken("a buffer length that the layout does not carry")),
        }
    }
}

/// Attributes and metadata of the module.
pub(crate) fn tail(layout: &KernelLayout, flavor: Flavor) -> String {
    let [x, y, z] = layout.workgroup;
    let name = &layout.entry;
    match flavor {
        Flavor::Nvptx { .. } => format!(
            "attributes #0 = {{ nounwind }}\nattributes #1 = {{ convergent nounwind }}\n\n\
             !nvvm.annotations = !{{!0}}\n!0 = !{{ptr @{name}, !\"kernel\", i32 1, \
             !\"maxntidx\", i32 {x}, !\"maxntidy\", i32 {y}, !\"maxntidz\", i32 {z}}}\n\
             !llvm.module.flags = !{{!1}}\n{DEBUG_VERSION}"
        ),
        Flavor::Amdgcn { .. } => {
            let size = u64::from(x) * u64::from(y) * u64::from(z);
            format!(
                "attributes #0 = {{ nounwind \"amdgpu-flat-work-group-size\"=\"1,{size}\" \
                 \"uniform-work-group-size\"=\"true\" }}\n\n!llvm.module.flags = !{{!0, !1}}\n\
                 !0 = !{{i32 1, !\"amdgpu_code_object_version\", i32 500}}\n{DEBUG_VERSION}"
            )
        }
    }
}
