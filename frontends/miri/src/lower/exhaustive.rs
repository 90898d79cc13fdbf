//! Whether the arms of a `match` cover every value of a type.
//!
//! The patterns form a matrix with a row for each arm and a column for each value that is looked
//! at; a column is taken away at a time, once for each case that its type has. What no row is
//! left for is not covered.

use super::body::Body;
use crate::ast::*;
use crate::lower::consts::ConstValue;
use crate::ty::{Ty, TyKind, fixed as ty};

/// More rows than this are not looked at.
const MAX_ROWS: usize = 200_000;
/// More choices than this are not made at a time.
const MAX_CHOICES: usize = 100;

/// What a pattern covers.
pub(super) enum Cover {
    All,
    /// One value of a type that has countless.
    One,
    /// A case of the type, by number, where its fields are covered.
    Case(usize, Vec<Cover>),
}

static ALL: Cover = Cover::All;

/// A case of a type: its name and the types of its fields.
struct Case {
    name: String,
    fields: Vec<Ty>,
}

/// A search for a value that is not covered.
#[derive(Default)]
struct Search {
    /// The chosen cases in the order in which they are written, with the number of their fields.
    chosen: Vec<(String, usize)>,
    choices: usize,
    rows: usize,
}

impl Body<'_, '_, '_> {
    /// What a pattern covers of a type; the pattern fits the type.
    pub(super) fn cover(&mut self, id: PatternId, t: Ty) -> Cover {
        let program = self.cx.program;
        let pattern = &program.ast[id];
        match &pattern.kind {
            PatternKind::Wildcard => Cover::All,
            &PatternKind::Name(name) => {
                if self.is_variant_name(name, t) {
                    let ident = Ident { sym: name, span: pattern.span };
                    return self.cover_variant(&[ident], &[], t, id);
                }
                match self.cx.constant(name, pattern.span).map(|known| known.value) {
                    None => Cover::All,
                    Some(ConstValue::Bool(b)) => Cover::Case(b.into(), Vec::new()),
                    Some(
                        ConstValue::Int(_)
                        | ConstValue::Float(_)
                        | ConstValue::Str(_)
                        | ConstValue::Joined(_),
                    ) => Cover::One,
                }
            }
            &PatternKind::Literal(e) => match program.ast[e].kind {
                ExprKind::Bool(b) => Cover::Case(b.into(), Vec::new()),
                _ => Cover::One,
            },
            PatternKind::Variant { path, fields } => self.cover_variant(path, fields, t, id),
            PatternKind::Tuple(parts) => {
                let TyKind::Tuple(items) = self.cx.tys.kind(t) else { return Cover::One };
                let items = self.cx.tys.items(items).to_vec();
                let parts = parts.iter().zip(items).map(|(&p, t)| self.cover(p, t)).collect();
                Cover::Case(0, parts)
            }
        }
    }

    fn cover_variant(
        &mut self,
        path: &[Ident],
        fields: &[PatternId],
        t: Ty,
        id: PatternId,
    ) -> Cover {
        let span = self.cx.program.ast[id].span;
        match self.variant_of(path, t, span) {
            Ok((n, tys)) => {
                let fields = fields.iter().zip(tys).map(|(&f, t)| self.cover(f, t)).collect();
                Cover::Case(n as usize, fields)
            }
            Err(_) => Cover::All,
        }
    }

    /// The cases of a type that has few; of the others a pattern covers one value or all.
    fn cases(&mut self, t: Ty) -> Option<Vec<Case>> {
        let case = |name: &str, fields: Vec<Ty>| Case { name: name.to_string(), fields };
        Some(match self.cx.tys.kind(t) {
            TyKind::Bool => vec![case("false", Vec::new()), case("true", Vec::new())],
            TyKind::Option(t) => vec![case("None", Vec::new()), case("Some", vec![t])],
            TyKind::Result(t, e) => vec![case("Ok", vec![t]), case("Err", vec![e])],
            TyKind::Tuple(items) => vec![case("", self.cx.tys.items(items).to_vec())],
            TyKind::Enum(n, args) => {
                let program = self.cx.program;
                let variants = self.cx.variants(n, args);
                variants.into_iter().map(|(v, fields)| case(program.name(v), fields)).collect()
            }
            _ => return None,
        })
    }

    /// Values of a type that no pattern covers, as they would be written: one for each case that
    /// the type has.
    pub(super) fn not_covered(&mut self, covers: &[Cover], t: Ty) -> Vec<String> {
        if t == ty::ERROR {
            return Vec::new();
        }
        let rows: Vec<_> = covers.iter().map(|cover| vec![cover]).collect();
        let cases = self.cases(t).unwrap_or_default();
        if cases.len() < 2 {
            let mut search = Search::default();
            let found = self.find_uncovered(rows, vec![t], &mut search);
            return found.then(|| search.written()).into_iter().collect();
        }
        let mut missing = Vec::new();
        for (n, case) in cases.iter().enumerate() {
            let mut search = Search::default();
            search.chosen.push((case.name.clone(), case.fields.len()));
            if self.find_uncovered(specialised(&rows, n, case), columns(case), &mut search) {
                missing.push(search.written());
            }
        }
        missing
    }

    /// Searches a value for which no row is left. Rows and types are those of the columns, the
    /// next one last.
    fn find_uncovered(
        &mut self,
        mut rows: Vec<Vec<&Cover>>,
        mut tys: Vec<Ty>,
        search: &mut Search,
    ) -> bool {
        loop {
            search.rows += rows.len();
            if rows.is_empty() || search.rows > MAX_ROWS || search.choices > MAX_CHOICES {
                return true;
            }
            let Some(t) = tys.pop() else { return false };
            let is_split = rows.iter().any(|row| matches!(row.last(), Some(Cover::Case(..))));
            let cases = if is_split { self.cases(t) } else { None };
            match cases.as_deref() {
                None => {
                    rows.retain(|row| matches!(row.last(), Some(Cover::All)));
                    for row in &mut rows {
                        row.pop();
                    }
                    search.chosen.push(("_".to_string(), 0));
                }
                Some([only]) => {
                    rows = specialised(&rows, 0, only);
                    tys.extend(columns(only));
                    search.chosen.push((only.name.clone(), only.fields.len()));
                }
                Some(cases) => {
                    let before = search.chosen.len();
                    search.choices += 1;
                    for (n, case) in cases.iter().enumerate() {
                        search.chosen.push((case.name.clone(), case.fields.len()));
                        let tys = tys.iter().copied().chain(columns(case)).collect();
                        if self.find_uncovered(specialised(&rows, n, case), tys, search) {
                            return true;
                        }
                        search.chosen.truncate(before);
                    }
                    search.choices -= 1;
                    return false;
                }
            }
        }
    }
}

/// The types of a case's fields as columns.
fn columns(case: &Case) -> Vec<Ty> {
    case.fields.iter().rev().copied().collect()
}

/// The rows that cover a case, with its fields in place of the column.
fn specialised<'c>(rows: &[Vec<&'c Cover>], n: usize, case: &Case) -> Vec<Vec<&'c Cover>> {
    let mut special = Vec::new();
    for row in rows {
        let Some((&last, rest)) = row.split_last() else { continue };
        let mut row = rest.to_vec();
        match last {
            Cover::All => row.extend(case.fields.iter().map(|_| &ALL)),
            Cover::Case(m, fields) if *m == n => row.extend(fields.iter().rev()),
            Cover::Case(..) | Cover::One => continue,
        }
        special.push(row);
    }
    special
}

impl Search {
    /// The value that was found, as a pattern.
    fn written(self) -> String {
        let mut chosen = self.chosen.into_iter();
        match chosen.as_slice() {
            [(name, 0)] if name == "_" => "all values".to_string(),
            _ => format!("`{}`", write_next(&mut chosen)),
        }
    }
}

fn write_next(chosen: &mut std::vec::IntoIter<(String, usize)>) -> String {
    match chosen.next() {
        None => "_".to_string(),
        Some((name, 0)) => name,
        Some((name, count)) => {
            let fields: Vec<String> = (0..count).map(|_| write_next(chosen)).collect();
            format!("{name}({})", fields.join(", "))
        }
    }
}
