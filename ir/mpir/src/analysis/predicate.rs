//! [`Predicate`]: integer comparisons taken apart.

use crate::Op;

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An `icmp` op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Predicate {
    pub(crate) relation: Relation,
    /// Whether the operands are read as signed numbers; false for equality.
    pub(crate) signed: bool,
}

const TABLE: [(Op, Relation, bool); 10] = [
    (Op::IcmpEq, Relation::Eq, false),
    (Op::IcmpNe, Relation::Ne, false),
    (Op::IcmpUlt, Relation::Lt, false),
    (Op::IcmpUle, Relation::Le, false),
    (Op::IcmpUgt, Relation::Gt, false),
    (Op::IcmpUge, Relation::Ge, false),
    (Op::IcmpSlt, Relation::Lt, true),
    (Op::IcmpSle, Relation::Le, true),
    (Op::IcmpSgt, Relation::Gt, true),
    (Op::IcmpSge, Relation::Ge, true),
];

impl Predicate {
    /// The predicate of an op; `None` when it is no `icmp`.
    pub(crate) fn of(op: Op) -> Option<Predicate> {
        let (_, relation, signed) = *TABLE.iter().find(|row| row.0 == op)?;
        Some(Predicate { relation, signed })
    }

    /// The op of the predicate.
    pub(crate) fn op(self) -> Op {
        let is_self = |row: &&(Op, Relation, bool)| {
            row.1 == self.relation && (row.2 == self.signed || row.1 <= Relation::Ne)
        };
        TABLE.iter().find(is_self).map_or(Op::IcmpEq, |row| row.0)
    }

    /// The predicate with operands exchanged.
    pub(crate) fn swapped(self) -> Predicate {
        let relation = match self.relation {
            Relation::Eq => Relation::Eq,
            Relation::Ne => Relation::Ne,
            Relation::Lt => Relation::Gt,
            Relation::Le => Relation::Ge,
            Relation::Gt => Relation::Lt,
            Relation::Ge => Relation::Le,
        };
        Predicate { relation, ..self }
    }

    /// The predicate that holds when this one does not.
    pub(crate) fn opposite(self) -> Predicate {
        let relation = match self.relation {
            Relation::Eq => Relation::Ne,
            Relation::Ne => Relation::Eq,
            Relation::Lt => Relation::Ge,
            Relation::Le => Relation::Gt,
            Relation::Gt => Relation::Le,
            Relation::Ge => Relation::Lt,
        };
        Predicate { relation, ..self }
    }
}
