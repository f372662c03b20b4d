//! Judges whether the dependencies of one app are met.

use std::collections::BTreeMap;

use emco_crds::composite_app::DependencyState;

use super::Wait;

/// How far an app of the target revision is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// Something is not applied, or a hook did not run.
    #[default]
    Nothing,
    /// Everything is applied and all hooks ran.
    Deployed,
    /// And everything is ready.
    Ready,
}

impl Reached {
    /// Whether that is what a dependency asks for.
    pub fn meets(self, state: DependencyState) -> bool {
        self >= match state {
            DependencyState::Deployed => Self::Deployed,
            DependencyState::Ready => Self::Ready,
        }
    }
}

/// What an app waits for next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting<'a> {
    /// A dependency that is not met.
    For(&'a Wait),
    /// A delay that is over in so many milliseconds.
    Delay(&'a Wait, i64),
}

/// What is decided of an app's dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged<'a> {
    /// Dependencies with a delay that are met, and since when, in seconds.
    pub since: BTreeMap<String, i64>,
    /// What is waited for; `None`: the app may come.
    pub waiting: Option<Waiting<'a>>,
}

/// Judges the dependencies of an app. `before` are the times of the last judgement, in whole seconds as they are stored; a time to
/// come, of a clock that was wrong, begins anew. Times are rounded up: no delay is shorter than it is written. `is_met` answers `None`
/// where nobody knows: then nothing opens, and a delay that began goes on.
pub fn judge<'a>(
    waits: &'a [Wait],
    mut is_met: impl FnMut(&Wait) -> Option<bool>,
    before: &BTreeMap<String, i64>,
    now_ms: i64,
) -> Judged<'a> {
    let now = now_ms.div_euclid(1000) + i64::from(now_ms.rem_euclid(1000) > 0);
    let mut since = BTreeMap::new();
    let (mut unmet, mut delayed) = (None, None::<(&Wait, i64)>);
    for wait in waits {
        let known = is_met(wait);
        if known != Some(true) {
            unmet = unmet.or(Some(wait));
            if let Some(met) = before.get(&wait.on).filter(|_| known.is_none()) {
                since.insert(wait.on.clone(), *met);
            }
            continue;
        }
        if wait.delay.is_zero() {
            continue;
        }
        let met = before.get(&wait.on).copied().filter(|met| *met <= now).unwrap_or(now);
        since.insert(wait.on.clone(), met);
        let delay = i64::try_from(wait.delay.as_millis()).unwrap_or(i64::MAX);
        let left = met.saturating_mul(1000).saturating_add(delay).saturating_sub(now_ms);
        if left > 0 && delayed.is_none_or(|(_, most)| left > most) {
            delayed = Some((wait, left));
        }
    }
    let waiting = match (unmet, delayed) {
        (Some(wait), _) => Some(Waiting::For(wait)),
        (None, Some((wait, left))) => Some(Waiting::Delay(wait, left)),
        (None, None) => None,
    };
    Judged { since, waiting }
}
