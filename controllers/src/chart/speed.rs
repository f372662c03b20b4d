//! The body of an answer comes in as fast as it has to, or is given up.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::time::{Instant, timeout_at};

use super::{ChartError, ChartLimits};

/// What is measured at once.
const WINDOW: Duration = Duration::from_secs(10);
/// The same where the server has to work before it can send.
const LONG_WINDOW: Duration = Duration::from_mins(1);

/// Reads at most `most` bytes. After the first one each window has to bring its share; the whole may take as long as the limits say.
pub async fn read<B>(
    shown: &str,
    body: B,
    most: usize,
    limits: &ChartLimits,
    works: bool,
) -> Result<Bytes, ChartError>
where
    B: Body<Data = Bytes>,
{
    let unreachable = |message: String| ChartError::new("SourceUnreachable", &message);
    let window = if works { LONG_WINDOW } else { WINDOW };
    let seconds = usize::try_from(WINDOW.as_secs()).unwrap_or(1);
    let share = limits.slowest.saturating_mul(seconds);
    let end = Instant::now() + limits.time;
    let (mut window_ends, mut before) = (None, 0);
    let mut body = Box::pin(body);
    let mut all = BytesMut::new();
    loop {
        let until: Instant = window_ends.map_or(end, |at: Instant| at.min(end));
        let frame = match timeout_at(until, body.frame()).await {
            Ok(None) => return Ok(all.freeze()),
            Ok(Some(frame)) => Some(frame.map_err(|_| {
                unreachable(format!("{shown} closed the connection in the middle of an answer"))
            })?),
            Err(_) => None,
        };
        if let Some(data) = frame.and_then(|frame| frame.into_data().ok()) {
            if all.len() + data.len() > most {
                return Err(ChartError::new(
                    "ChartTooLarge",
                    &format!("{shown} answers more than {most} bytes to one request"),
                ));
            }
            all.extend_from_slice(&data);
        }
        let now = Instant::now();
        if now >= end {
            return Err(unreachable(format!("{shown} did not finish an answer within {:?}", limits.time)));
        }
        match window_ends {
            None if all.is_empty() => {}
            None => window_ends = Some(now + window),
            Some(at) if now < at => {}
            Some(_) if all.len() - before < share => {
                return Err(unreachable(format!(
                    "{shown} sends {} bytes in {window:?}, and at least {share} are wanted",
                    all.len() - before
                )));
            }
            Some(_) => (window_ends, before) = (Some(now + window), all.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// `bytes` each second, for so many seconds.
    async fn read_of(bytes: usize, seconds: usize, works: bool) -> Result<usize, String> {
        let frames = stream::unfold(0, move |sent| async move {
            if sent == seconds {
                return None;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let frame = Frame::data(Bytes::from(vec![b'a'; bytes]));
            Some((Ok::<_, std::convert::Infallible>(frame), sent + 1))
        });
        let read = read("the server", StreamBody::new(frames), 1 << 20, &ChartLimits::default(), works).await;
        read.map(|all| all.len()).map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_a_byte_a_second_is_given_up_after_ten_seconds() {
        let begun = Instant::now();
        let error = read_of(1, 119, false).await.unwrap_err();
        assert!(error.contains("bytes in 10s, and at least 40960 are wanted"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(13), "{:?}", begun.elapsed());
        let begun = Instant::now();
        assert!(read_of(1, 119, true).await.is_err(), "a server that works has a minute");
        assert!((60..65).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_fast_enough_or_short_is_read() {
        assert_eq!(read_of(5000, 100, false).await, Ok(500_000));
        assert_eq!(read_of(3, 5, false).await, Ok(15));
        let error = read_of(5000, 121, false).await.unwrap_err();
        assert!(error.contains("did not finish an answer within 120s"), "{error}");
        let error = read_of(1 << 19, 3, false).await.unwrap_err();
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }
}
