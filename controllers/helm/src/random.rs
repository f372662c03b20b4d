//! Gives each call in a template its stream of random bytes. With a seed equal calls get equal streams, so a second render
//! gives the same passwords and keys; without one the system's randomness is used.
use hkdf::Hkdf;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{OsRng, RngCore, SeedableRng};
use sha2::Sha256;

use crate::funcs::{CallSite, Ctx, FuncError};

/// The stream of one call.
pub(crate) struct Stream(ChaCha20Rng);

impl Stream {
    /// Counts the call and opens its stream.
    pub fn of_call(ctx: &Ctx<'_>) -> Result<Self, FuncError> {
        let site = ctx.call_site();
        let mut key = [0; 32];
        match &ctx.shared.seed {
            Some(seed) => derive(seed, &site, &mut key)?,
            None => OsRng
                .try_fill_bytes(&mut key)
                .map_err(|error| FuncError::new(format!("the system gives no random bytes: {error}")))?,
        }
        Ok(Self(ChaCha20Rng::from_seed(key)))
    }

    /// A stream that is the same in every run.
    #[cfg(test)]
    pub fn of_seed(seed: usize) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed as u64))
    }

    pub fn rng(&mut self) -> &mut ChaCha20Rng {
        &mut self.0
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A number below a bound, each equally likely.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        // The largest multiple of the bound; numbers above it would favor small results.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let number = self.0.next_u64();
            if number < limit {
                return number % bound;
            }
        }
    }
}

fn derive(seed: &[u8; 32], site: &CallSite, key: &mut [u8; 32]) -> Result<(), FuncError> {
    let mut info = b"emco-helm call".to_vec();
    // Lengths keep two sites apart whose parts would read the same when joined.
    for part in [site.file.as_str(), site.template.as_str(), site.function] {
        info.extend_from_slice(&part.len().to_be_bytes());
        info.extend_from_slice(part.as_bytes());
    }
    info.extend_from_slice(&site.nth.to_be_bytes());
    Hkdf::<Sha256>::new(None, seed)
        .expand(&info, key)
        .map_err(|_| FuncError::new("the random stream's key has a wrong length"))
}
