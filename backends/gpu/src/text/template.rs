//! Templates: how most operations are written.

use super::{Emit, Language, Text};
use magpie_mpir::Inst;

/// Whether an expression can be an operand of anything without parentheses: there is no space
/// outside brackets, and no sign in front.
pub(super) fn is_atomic(expression: &str) -> bool {
    let mut depth = 0u32;
    for byte in expression.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => return false,
            _ => {}
        }
    }
    !expression.starts_with(['-', '!', '~', '*', '&'])
}

impl Text<'_> {
    /// Writes the expression of an instruction from a template:
    ///
    /// - `$0` … `$3` are operands, in parentheses unless they are names, literals or calls;
    /// - `#0` … `#3` are operands between brackets and commas, where they need none;
    /// - `$T` is the type of the result, `$U` and `$S` the unsigned and signed integers of its width
    ///   and lanes;
    /// - `%T`, `%U` and `%S` are the same for operand 0.
    ///
    /// A template names each operand at most once: an operand may be an expression of its own, and
    /// to repeat it would make text grow without bound. Write a function of the language for what
    /// reads an operand twice.
    ///
    /// # Errors
    /// What [`Text::operand`] says.
    pub fn expand(&mut self, language: &mut impl Language, i: Inst, template: &str) -> Emit {
        let mut rest = template;
        let mut seen = 0u8;
        while let Some(at) = rest.find(['$', '#', '%']) {
            let (plain, marked) = rest.split_at(at);
            self.out.push_str(plain);
            let what = marked.as_bytes().get(1).copied().unwrap_or(b' ');
            let of_operand = marked.starts_with('%');
            match what {
                b'0'..=b'3' if !of_operand => {
                    let n = (what - b'0') as usize;
                    debug_assert!(seen & 1 << n == 0, "`{template}` repeats operand {n}");
                    seen |= 1 << n;
                    let v = self.arg(i, n)?;
                    match marked.starts_with('$') {
                        true => self.operand(language, v)?,
                        false => self.argument(language, v)?,
                    }
                }
                b'T' | b'U' | b'S' => {
                    let shape = match of_operand {
                        true => self.shape_of_operand(i, 0)?,
                        false => self.shape_of_result(i)?,
                    };
                    let shape = match what {
                        b'U' => shape.unsigned(),
                        b'S' => shape.signed(),
                        _ => shape,
                    };
                    let name = language.type_name(shape);
                    self.out.push_str(name);
                }
                // An operator that looks like a mark.
                _ => {
                    self.out.push_str(&marked[..1]);
                    rest = &marked[1..];
                    continue;
                }
            }
            rest = &marked[2..];
        }
        self.out.push_str(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_atomic;

    #[test]
    fn calls_and_names_need_no_parentheses() {
        for text in ["x", "f(a, b)", "a[i + 1u]", "a.x", "vec2<f32>(a, -b)", "(a + b)", "7u"] {
            assert!(is_atomic(text), "{text}");
        }
        for text in ["a + b", "-x", "!x", "f(a) + g(b)", "(a) * (b)"] {
            assert!(!is_atomic(text), "{text}");
        }
    }
}
