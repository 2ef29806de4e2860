//! What a disk does when nobody asks: it empties its write cache, and after a while the scheme works ahead of demand.

use stripewise_swd::{Scheme, SwdError};

use crate::medium::TimedMedium;
use crate::settings::Background;
use crate::time::milliseconds;

/// Work of an idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worked {
    pub(crate) steps: u64,
    pub(crate) ns: u64,
}

/// Nobody asks from `from_ns` until `until_ns`. What is begun before that is done, so that the clock may stand later then.
pub(crate) fn idle<S: Scheme<Medium = TimedMedium>>(
    scheme: &mut S,
    background: Option<Background>,
    from_ns: u64,
    until_ns: u64,
) -> Result<Worked, SwdError> {
    let mut worked = Worked::default();
    if let Some(background) = background {
        let begin_ns = from_ns.saturating_add(milliseconds(background.after_ms));
        let end_ns = background.budget_ms.map_or(until_ns, |budget_ms| until_ns.min(begin_ns.saturating_add(milliseconds(budget_ms))));
        if begin_ns < until_ns {
            scheme.medium_mut().idle_until(begin_ns);
        }
        let mut now_ns = scheme.medium().now_ns();
        while (begin_ns..end_ns).contains(&now_ns) && scheme.idle_step()? {
            let after_ns = scheme.medium().now_ns();
            worked = Worked { steps: worked.steps + 1, ns: worked.ns + after_ns - now_ns };
            now_ns = after_ns;
        }
    }
    scheme.medium_mut().idle_until(until_ns);
    Ok(worked)
}
