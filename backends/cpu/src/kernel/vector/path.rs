//! Regions in which all invocations that run in lanes execute the same blocks, one after the other.

use super::super::regions::{Region, RegionPlan};
use super::guard::Guard;
use super::vary::Vary;
use magpie_mpir::{Block, MpirFn, Terminator};

/// The most groups of lanes that follow each other in one round of a loop.
const MAX_GROUPS: u32 = 4;
/// So many instructions in lanes make a round worth its overhead.
const ENOUGH: usize = 32;

/// The blocks from the leader of a region to its end.
#[derive(Debug)]
pub(crate) struct Path {
    pub(super) blocks: Vec<Block>,
    groups: u32,
}

impl Path {
    /// The path through a region, or `None` when its branches or loops allow several.
    pub(crate) fn find(
        f: &MpirFn,
        plan: &RegionPlan,
        region: &Region,
        vary: &Vary,
        guard: &Guard,
    ) -> Option<Path> {
        let mut blocks = Vec::new();
        let mut next = Some(region.leader);
        while let Some(b) = next {
            if blocks.len() == region.blocks.len() {
                // Each block once: this is a loop.
                return None;
            }
            blocks.push(b);
            let to = match (guard.active_side(b), &f.block(b).term) {
                (Some(to), _) | (None, &Terminator::Br(to)) => Some(to),
                (None, Terminator::Ret(_) | Terminator::Unreachable) => None,
                (None, Terminator::Cbr { .. } | Terminator::Switch { .. }) => return None,
            };
            next = to.filter(|&to| plan.is_internal(b, to));
        }
        let insts = blocks.iter().flat_map(|&b| &f.block(b).insts);
        let work = insts
            .filter(|&&i| match f.inst(i).result() {
                Some(v) => vary.get(v) && vary.stride(f, v).is_none(),
                None => true,
            })
            .count();
        let mut groups = MAX_GROUPS;
        while groups > 1 && work * groups as usize > ENOUGH {
            groups /= 2;
        }
        Some(Path { blocks, groups })
    }

    /// How many groups of lanes follow each other in a round of the loop over lanes.
    pub(crate) fn groups(&self) -> u32 {
        self.groups
    }
}
