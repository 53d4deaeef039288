//! Whether SSH answers: a connection, and the line with which a server begins. Nothing is sent.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;
use transport::Way;

use super::connect;

/// Longest time of the whole check.
const LIMIT: Duration = Duration::from_secs(3);
/// Other lines may come before that of the version (RFC 4253, 4.2).
const READ: u64 = 8 * 1024;
const VERSIONS: [&[u8]; 2] = [b"SSH-2.0-", b"SSH-1.99-"];

/// Asks `IP:port`.
///
/// # Errors
/// A code.
pub(super) async fn check(target: &str, way: Way<'_>) -> Result<(), &'static str> {
    let asked = async {
        let stream = connect::open(target, way, LIMIT).await?;
        banner(stream).await
    };
    timeout(LIMIT, asked).await.unwrap_or(Err("timeout"))
}

/// Reads to the line of the version.
async fn banner(stream: impl AsyncRead + Unpin) -> Result<(), &'static str> {
    let (mut stream, mut seen) = (stream.take(READ), Vec::new());
    loop {
        let before = seen.len();
        let read = stream.read_buf(&mut seen).await;
        let is_there = |version: &&[u8]| {
            seen.starts_with(version)
                || seen.windows(version.len() + 1).any(|at| at[0] == b'\n' && at[1..] == **version)
        };
        if VERSIONS.iter().any(is_there) {
            return Ok(());
        }
        match read {
            Ok(_) if seen.len() > before => {}
            Ok(_) => return Err("no-ssh-banner"),
            Err(_) => return Err("reset"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_of_ssh_is_known_by_its_first_words_and_nobody_else() {
        for (said, expected) in [
            (&b"SSH-2.0-OpenSSH_9.9\r\n"[..], Ok(())),
            (b"SSH-1.99-x", Ok(())),
            (b"welcome\r\nto you\r\nSSH-2.0-x\r\n", Ok(())),
            (b"SSH-1.5-old\r\n", Err("no-ssh-banner")),
            (b"say SSH-2.0-x\r\n", Err("no-ssh-banner")),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", Err("no-ssh-banner")),
            (b"", Err("no-ssh-banner")),
        ] {
            assert_eq!(banner(said).await, expected, "{}", String::from_utf8_lossy(said));
        }
        let endless = tokio::io::repeat(b'\n');
        assert_eq!(banner(endless).await, Err("no-ssh-banner"), "it is read to a limit");
    }
}
