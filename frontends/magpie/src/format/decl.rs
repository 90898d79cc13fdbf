//! The header and the declarations.

use super::*;
use crate::literal::encode_string;

impl<'m> Printer<'m> {
    pub(super) fn module(&mut self) {
        let ast = self.ast;
        let header = &ast.header;
        let [module, exports, imports, digest] = header.parts;
        self.top_level_comments(module.start);
        self.line(0, module, |p| {
            p.out.push_str("module ");
            p.out.push_str(p.name(header.module.symbol));
        });
        self.line(0, exports, |p| {
            p.out.push_str("exports ");
            p.exports(header.exports, true);
        });
        self.line(0, imports, |p| p.imports(header.imports));
        self.comments_before(digest.end, 0);
        self.digest_line.start = self.out.len();
        self.line(0, digest, |p| {
            p.out.push_str("digest \"");
            p.out.extend(std::iter::repeat_n('0', DIGEST_LEN));
            p.out.push('"');
        });
        self.digest_line.end = self.out.len();
        for decl in &ast.decls {
            self.out.push('\n');
            self.top_level_comments(decl.range.start);
            self.decl(decl);
        }
        if self.comments_done < ast.comments.len() {
            self.out.push('\n');
            self.top_level_comments(self.text.len() as u32);
        }
    }

    /// `{ @f, TX }`, sorted; with spaces inside the braces or without.
    fn exports(&mut self, exports: Slice<Export>, spaced: bool) {
        let mut entries: Vec<_> = self.ast[exports]
            .iter()
            .map(|export| (export.kind == ExportKind::Type, self.name(export.name.symbol)))
            .collect();
        entries.sort_unstable();
        let write = |p: &mut Self, (is_type, name): (bool, &str)| {
            if !is_type {
                p.out.push('@');
            }
            p.out.push_str(name);
        };
        if spaced {
            return self.braced(&entries, write);
        }
        self.out.push('{');
        self.separated(&entries, ", ", write);
        self.out.push('}');
    }

    fn imports(&mut self, imports: Slice<Import>) {
        let mut imports: Vec<_> = self.ast[imports].to_vec();
        imports.sort_by_key(|import| self.name(import.path.symbol));
        self.out.push_str("imports ");
        self.braced(&imports, |p, import| {
            p.out.push_str(p.name(import.path.symbol));
            if let Some(items) = import.items {
                p.out.push_str("::");
                p.exports(items, false);
            }
        });
    }

    fn decl(&mut self, decl: &'m Decl) {
        match &decl.kind {
            DeclKind::Fn(function) => self.function(decl.range, function),
            DeclKind::Type(ty) => self.type_decl(decl.range, ty),
            DeclKind::Extern(module) => self.extern_decl(decl.range, module),
            DeclKind::Global(global) => self.line(0, decl.range, |p| {
                p.out.push_str("global @");
                p.out.push_str(p.name(global.name.symbol));
                p.out.push_str(": ");
                p.ty(global.ty.id);
                p.out.push_str(" = ");
                p.constant(global.value);
            }),
            DeclKind::Impl(decl_impl) => self.line(0, decl.range, |p| {
                p.out.push_str(match decl_impl.interface {
                    Interface::Hash => "impl hash for ",
                    Interface::Eq => "impl eq for ",
                    Interface::Ord => "impl ord for ",
                });
                p.ty(decl_impl.ty.id);
                p.out.push_str(" = ");
                p.fn_ref(decl_impl.function);
            }),
            DeclKind::Sig(sig) => self.line(0, decl.range, |p| {
                p.out.push_str("sig ");
                p.out.push_str(p.name(sig.name.symbol));
                p.out.push('(');
                p.separated(&p.ast[sig.params], ", ", |p, ty| p.ty(ty.id));
                p.out.push_str(") -> ");
                p.ty(sig.result.id);
            }),
        }
    }

    pub(super) fn fn_head(&mut self, function: &FnDecl) {
        if function.is_async {
            self.out.push_str("async ");
        }
        if function.is_unsafe {
            self.out.push_str("unsafe ");
        }
        if function.gpu.is_some() {
            self.out.push_str("gpu ");
        }
        self.out.push_str("fn @");
        self.out.push_str(self.name(function.name.symbol));
        self.type_params(function.type_params);
        self.params(function.params);
        self.out.push_str(" -> ");
        self.ty(function.result.id);
        if let Some(gpu) = &function.gpu {
            self.gpu_clauses(gpu);
        }
        self.meta(function);
        self.out.push_str(" {");
    }

    fn gpu_clauses(&mut self, gpu: &GpuClauses) {
        self.out.push_str(" target(");
        self.out.push_str(self.name(gpu.target.symbol));
        self.out.push(')');
        if let Some(Workgroup { size: [x, y, z], .. }) = gpu.workgroup {
            self.out.push_str(&format!(" workgroup({x}, {y}, {z})"));
        }
        if let Some(requires) = gpu.requires {
            self.out.push_str(" requires(");
            self.separated(&self.ast[requires.capabilities], ", ", |p, capability| {
                p.out.push_str(p.name(capability.symbol));
            });
            self.out.push(')');
        }
    }

    fn type_params(&mut self, params: Slice<TypeParam>) {
        if params.is_empty() {
            return;
        }
        self.out.push('<');
        self.separated(&self.ast[params], ", ", |p, param| {
            p.out.push_str(p.name(param.name.symbol));
            p.out.push_str(match param.bound {
                Bound::Type => ": type",
                Bound::Send => ": send",
                Bound::Sync => ": sync",
                Bound::Hash => ": hash",
                Bound::Eq => ": eq",
                Bound::Ord => ": ord",
            });
        });
        self.out.push('>');
    }

    fn params(&mut self, params: Slice<Param>) {
        self.out.push('(');
        self.separated(&self.ast[params], ", ", |p, param| {
            p.ssa(param.name.symbol);
            p.out.push_str(": ");
            p.ty(param.ty.id);
        });
        self.out.push(')');
    }

    fn type_decl(&mut self, range: ByteRange, decl: &TypeDecl) {
        let head = ByteRange { start: range.start, end: decl.body.start + 1 };
        self.head_line(0, head, |p| {
            p.out.push_str(if decl.is_heap { "heap " } else { "value " });
            p.out.push_str(match decl.kind {
                TypeDeclKind::Struct(_) => "struct ",
                TypeDeclKind::Enum(_) => "enum ",
            });
            p.out.push_str(p.name(decl.name.symbol));
            p.type_params(decl.type_params);
            p.out.push_str(" {");
        });
        match decl.kind {
            TypeDeclKind::Struct(fields) => {
                for field in &self.ast[fields] {
                    self.line(2, field.range, |p| p.field(field));
                }
            }
            TypeDeclKind::Enum(variants) => {
                for variant in &self.ast[variants] {
                    self.line(2, variant.range, |p| {
                        p.out.push_str("variant ");
                        p.out.push_str(p.name(variant.name.symbol));
                        p.out.push(' ');
                        p.braced(&p.ast[variant.fields], |p, field| p.field(&field));
                    });
                }
            }
        }
        self.close_line(decl.body, 2);
    }

    fn field(&mut self, field: &Field) {
        self.out.push_str("field ");
        self.out.push_str(self.name(field.name.symbol));
        self.out.push_str(": ");
        self.ty(field.ty.id);
    }

    fn extern_decl(&mut self, range: ByteRange, decl: &ExternDecl) {
        let head = ByteRange { start: range.start, end: decl.body.start + 1 };
        self.head_line(0, head, |p| {
            p.out.push_str("extern ");
            let abi = p.name(decl.abi.symbol);
            encode_string(abi, &mut p.out);
            p.out.push_str(" module ");
            p.out.push_str(p.name(decl.module.symbol));
            p.out.push_str(" {");
        });
        for function in &self.ast[decl.functions] {
            self.line(2, function.range, |p| {
                p.out.push_str("fn @");
                p.out.push_str(p.name(function.name.symbol));
                p.params(function.params);
                p.out.push_str(" -> ");
                p.ty(function.result.id);
                if !function.attributes.is_empty() {
                    p.attributes(function.attributes);
                }
            });
        }
        self.close_line(decl.body, 2);
    }

    fn attributes(&mut self, attributes: Slice<Attribute>) {
        self.out.push_str(" attrs { ");
        self.separated(&self.ast[attributes], " ", |p, attribute| {
            p.out.push_str(p.name(attribute.key.symbol));
            p.out.push('=');
            let value = p.name(attribute.value.symbol);
            encode_string(value, &mut p.out);
        });
        self.out.push_str(" }");
    }

    /// The `}` of a declaration, after the comments before it.
    pub(super) fn close_line(&mut self, body: ByteRange, inner_indent: usize) {
        let close = ByteRange { start: body.end - 1, end: body.end };
        self.comments_before(close.start, inner_indent);
        self.line(0, close, |p| p.out.push('}'));
    }
}
