//! Kernel launches.

use super::body::Body;
use super::*;
use crate::interner::Symbol;
use crate::resolve::FunctionName;
use crate::symbols;
use magpie_mpir::{Value as MpirValue, imm_pair};
use magpie_types::TypeKind;

/// What stands in a launch.
struct Launch<'a> {
    session: Option<&'a Arg>,
    device: &'a Arg,
    kernel: FnRefId,
    grid: Slice<ListItem>,
    block: Slice<ListItem>,
    args: Slice<ListItem>,
}

impl Body<'_, '_> {
    /// `gpu.launch` and `gpu.launch_async`; the arguments stand in the order of the table.
    pub(super) fn launch(&mut self, args: &[Arg], op: MpirOp, _instr: &Instr) -> Lower {
        let [device, kernel, grid, block, list, ref rest @ ..] = *args else {
            return Err(Poisoned);
        };
        let (
            ArgKind::Function(kernel),
            ArgKind::List(grid),
            ArgKind::List(block),
            ArgKind::List(args),
        ) = (kernel.kind, grid.kind, block.kind, list.kind)
        else {
            return Err(Poisoned);
        };
        let allows_cpu = matches!(rest, [Arg { kind: ArgKind::Word(symbols::CPU), .. }]);
        let launch = Launch { session: None, device: &device, kernel, grid, block, args };
        if allows_cpu && op == MpirOp::GpuLaunchAsync {
            let message = "`gpu.launch_async` has no fallback";
            let help = "leave `fallback` out, or use `gpu.launch`";
            return Err(self.error(Code::MPT2001, message, help));
        }
        self.launch_parts(&launch, op, u32::from(allows_cpu))
    }

    /// `gpu.profile.@launch_profiled { session dev kernel grid block args }`
    pub(super) fn profiled_launch(&mut self, args: Slice<Arg>) -> Lower {
        let ast = self.ast;
        let args = &ast[args];
        let names = crate::builtins::PROFILED_LAUNCH_PARAMS;
        let find = |body: &Self, name: &str| args.iter().find(|a| body.scope.name(a.key) == name);
        let is_known = |body: &Self, key: Symbol| names.contains(&body.scope.name(key));
        let parts = names.map(|name| find(self, name));
        let unknown = args.iter().find(|arg| !is_known(self, arg.key));
        let help =
            "write `{ session=…, dev=…, kernel=@k, grid=[x, y, z], block=[x, y, z], args=[…] }`";
        if let Some(unknown) = unknown {
            let key = self.scope.name(unknown.key);
            let message = format!("`gpu.profile.@launch_profiled` has no parameter `{key}`");
            return Err(self.error(Code::MPT2001, message, help));
        }
        let [Some(session), Some(device), Some(kernel), Some(grid), Some(block), Some(list)] =
            parts
        else {
            let missing = names.iter().zip(parts).find(|(_, part)| part.is_none());
            let missing = missing.map_or("", |(name, _)| name);
            let message = format!("`gpu.profile.@launch_profiled` needs `{missing}`");
            return Err(self.error(Code::MPT2001, message, help));
        };
        let (
            ArgKind::Function(kernel),
            ArgKind::List(grid),
            ArgKind::List(block),
            ArgKind::List(args),
        ) = (kernel.kind, grid.kind, block.kind, list.kind)
        else {
            let message = "the kernel, the sizes or the arguments of the launch are no such";
            return Err(self.error(Code::MPT2003, message, help));
        };
        if grid.len() != 3 || block.len() != 3 {
            let message = "`grid` and `block` have three sizes each";
            return Err(self.error(Code::MPT2001, message, help));
        }
        let launch = Launch { session: Some(session), device, kernel, grid, block, args };
        self.launch_parts(&launch, MpirOp::GpuLaunchProfiled, 0)
    }

    fn launch_parts(&mut self, launch: &Launch<'_>, op: MpirOp, bits: u32) -> Lower {
        let mut operands = Vec::with_capacity(8 + launch.args.len());
        let mut poisoned = false;
        if let Some(session) = launch.session {
            let v = self.launch_object(session, fixed::GPU_PROFILE_SESSION, "session");
            if let Ok(v) = v {
                self.changed(v, fixed::GPU_PROFILE_SESSION, "a launch");
            }
            poisoned |= v.is_err();
            operands.extend(v);
        }
        let device = self.launch_object(launch.device, fixed::GPU_DEVICE, "device");
        poisoned |= device.is_err();
        operands.extend(device);
        for (sizes, what) in [(launch.grid, "grid"), (launch.block, "block")] {
            poisoned |= self.launch_sizes(sizes, what, &mut operands).is_err();
        }
        let kernel = self.launched_kernel(launch.kernel);
        let values = self.list_values(launch.args);
        let (kernel, values) = (kernel?, values?);
        self.launch_args(kernel, &values)?;
        operands.extend(values);
        if poisoned {
            return Err(Poisoned);
        }
        let ok = if op == MpirOp::GpuLaunchAsync { fixed::GPU_FENCE } else { fixed::UNIT };
        let ty = self.intern(TypeKind::Result(ok, fixed::GPU_ERROR));
        let fn_id = self.cx.instances[kernel.0 as usize].fn_id;
        Ok(self.emit(op, ty, &operands, imm_pair(fn_id.0, bits)))
    }

    /// The device or the session, owned or borrowed.
    fn launch_object(&mut self, arg: &Arg, wanted: TypeId, what: &str) -> Lower<MpirValue> {
        let v = match arg.kind {
            ArgKind::Value(value) => self.value(value)?,
            ArgKind::Function(_) | ArgKind::Word(_) | ArgKind::List(_) => {
                return Err(self.list_as_value(arg));
            }
        };
        let found = self.f.ty(v);
        if self.seen_through(found) == wanted {
            return Ok(v);
        }
        let (found, wanted) = (self.type_name(found), self.type_name(wanted));
        let message = format!("the {what} of the launch is a `{found}`, not a `{wanted}`");
        Err(self.error(Code::MPT2003, message, format!("give a `{wanted}` or a borrow of one")))
    }

    fn launch_sizes(
        &mut self,
        sizes: Slice<ListItem>,
        what: &str,
        operands: &mut Vec<MpirValue>,
    ) -> Lower<()> {
        let values = self.list_values(sizes)?;
        for v in values {
            let found = self.f.ty(v);
            if found != fixed::U32 {
                let found = self.type_name(found);
                let message = format!("a size in `{what}` is a `{found}`, not a `u32`");
                return Err(self.error(Code::MPT2003, message, "write `const.u32 1`"));
            }
            operands.push(v);
        }
        Ok(())
    }

    /// The kernel that is launched.
    fn launched_kernel(&mut self, id: FnRefId) -> Lower<InstanceId> {
        let name = self.scope.name(self.ast[id].name);
        let FunctionName::Function(function) = self.callee(id)? else {
            let message = format!("`@{name}` is no kernel");
            return Err(self.error(Code::MPT2004, message, "name a `gpu fn`"));
        };
        let (_, decl) = self.cx.program.function(function);
        if decl.gpu.is_none() {
            let message = format!("`@{name}` is a plain function, not a kernel");
            return Err(self.error(Code::MPT2004, message, "name a `gpu fn`, or call it"));
        }
        // Kernels are added first; one that is missing was refused.
        self.cx.device[function.0 as usize].ok_or(Poisoned)
    }

    /// Checks the arguments against the parameters of the kernel.
    fn launch_args(&mut self, kernel: InstanceId, values: &[MpirValue]) -> Lower<()> {
        let program = self.cx.program;
        let instance = &self.cx.instances[kernel.0 as usize];
        let (module, decl) = program.function(instance.function);
        let scope = program.module(module);
        let params = instance.params.clone();
        let names = &scope.ast()[decl.params];
        if values.len() != params.len() {
            let kernel = scope.name(decl.name.symbol);
            let message = format!(
                "the launch gives {} arguments, but `@{kernel}` has {} parameters",
                values.len(),
                params.len()
            );
            let list: Vec<&str> = names.iter().map(|p| scope.name(p.name.symbol)).collect();
            let help = match list[..] {
                [] => "write `args=[]`".to_string(),
                _ => format!("the parameters are {}", list.join(", ")),
            };
            return Err(self.error(Code::MPT2001, message, help));
        }
        let mut wrong = false;
        for (n, (&v, &param)) in values.iter().zip(&params).enumerate() {
            let Some(param) = param else {
                wrong = true;
                continue;
            };
            let found = self.f.ty(v);
            let seen = match self.kind(param) {
                TypeKind::Buffer(_) => self.seen_through(found),
                _ => found,
            };
            if seen != param {
                let name = scope.name(names[n].name.symbol);
                let (found, wanted) = (self.type_name(found), self.type_name(param));
                let message = format!(
                    "kernel parameter `{name}` has the type `{wanted}`, but the argument is `{found}`"
                );
                self.error(Code::MPT2003, message, format!("give a `{wanted}`"));
                wrong = true;
            }
        }
        if wrong { Err(Poisoned) } else { Ok(()) }
    }
}
