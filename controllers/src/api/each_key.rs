//! Works on the keys of a queue: several at a time, of one namespace a part of them, and never twice at once on the same.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::api::key_queue::{Key, KeyQueue};
use crate::api::places::Places;

/// Never ends. A key that comes while it is worked on is worked on again.
pub async fn each_key<F: Future<Output = ()>>(queue: &KeyQueue, at_once: u16, work: impl Fn(Key) -> F) {
    let places = Arc::new(Places::new(at_once));
    let (mut busy, mut again) = (BTreeSet::<Key>::new(), BTreeSet::<Key>::new());
    let mut running = FuturesUnordered::new();
    loop {
        let key = tokio::select! {
            Some(done) = running.next(), if !running.is_empty() => {
                busy.remove(&done);
                if again.remove(&done) {
                    queue.enqueue(&done.0, &done.1);
                }
                continue;
            }
            key = queue.next() => key,
            key = places.freed.next() => key,
        };
        if busy.contains(&key) {
            again.insert(key);
            continue;
        }
        // Who gets no place comes again when there is one.
        let Some(place) = places.take(&key) else { continue };
        busy.insert(key.clone());
        let work = work(key.clone());
        running.push(async move {
            let _place = place;
            work.await;
            key
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, pin_mut};
    use parking_lot::Mutex;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn keys_of_a_slow_namespace_do_not_delay_those_of_others() {
        let (queue, done, slow) = (KeyQueue::default(), Mutex::new(Vec::new()), Semaphore::new(0));
        for n in 0..20 {
            queue.enqueue("loud", &format!("o{n}"));
        }
        queue.enqueue("quiet", "shop");
        let work = each_key(&queue, 8, async |key: Key| {
            if key.0 == "loud" {
                slow.acquire().await.unwrap().forget();
            }
            done.lock().push(key.0);
        });
        pin_mut!(work);
        assert!(work.as_mut().now_or_never().is_none());
        assert_eq!(*done.lock(), ["quiet"]);
        slow.add_permits(20);
        while done.lock().len() < 21 {
            assert!(work.as_mut().now_or_never().is_none());
        }
    }

    #[tokio::test]
    async fn a_key_that_comes_while_it_is_worked_on_is_worked_on_again() {
        let (queue, begun, gate) = (KeyQueue::default(), Mutex::new(0), Semaphore::new(0));
        queue.enqueue("shop", "a");
        let work = each_key(&queue, 8, async |_| {
            *begun.lock() += 1;
            gate.acquire().await.unwrap().forget();
        });
        pin_mut!(work);
        assert!(work.as_mut().now_or_never().is_none());
        queue.enqueue("shop", "a");
        assert!(work.as_mut().now_or_never().is_none());
        assert_eq!(*begun.lock(), 1, "not twice at once");
        gate.add_permits(1);
        assert!(work.as_mut().now_or_never().is_none());
        assert_eq!(*begun.lock(), 2);
    }
}
