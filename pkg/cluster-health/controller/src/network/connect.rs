//! One TCP connection within its time, and whether SSH answers on it.

use std::io;
use std::time::Duration;

use health::Code;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::{Unresolved, Way};

/// Longest time for all addresses of a target together.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Opens a connection to `host:port`, IPv6 in brackets.
///
/// # Errors
/// A code.
pub(super) async fn open(
    target: &str,
    way: Way<'_>,
    limit: Duration,
) -> Result<TcpStream, &'static str> {
    timeout(limit, any(target, way)).await.unwrap_or(Err("connect-timeout"))
}

/// The first of its addresses that may be dialled and takes a connection.
async fn any(target: &str, way: Way<'_>) -> Result<TcpStream, &'static str> {
    let (host, port) = target.rsplit_once(':').ok_or("bad-endpoint")?;
    let port: u16 = port.parse().map_err(|_| "bad-endpoint")?;
    let addresses = way.resolver.addresses(host, port, way.asker).await;
    let addresses = addresses.map_err(|error| match error {
        Unresolved::Unknown(_) => "dns",
        Unresolved::Denied => Code::AddressDenied.label(),
    })?;
    let mut code = "dns";
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => code = code_of(error.kind()),
        }
    }
    Err(code)
}

fn code_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "connect-refused",
        io::ErrorKind::TimedOut => "connect-timeout",
        io::ErrorKind::ConnectionReset => "reset",
        _ => "connect-failed",
    }
}

/// Longest time of the whole check for SSH.
const SSH_LIMIT: Duration = Duration::from_secs(3);
/// Other lines may come before that of the version (RFC 4253, 4.2).
const READ: u64 = 8 * 1024;
const VERSIONS: [&[u8]; 2] = [b"SSH-2.0-", b"SSH-1.99-"];

/// Checks that SSH answers at `IP:port`.
///
/// # Errors
/// A code.
pub(super) async fn check_ssh(target: &str, way: Way<'_>) -> Result<(), &'static str> {
    let asked = async {
        let stream = open(target, way, SSH_LIMIT).await?;
        banner(stream).await
    };
    timeout(SSH_LIMIT, asked).await.unwrap_or(Err("timeout"))
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
