//! Headless Chromium, which renders the pages of `-o html`. Its program is `chromium`, or the one that `OLM_TEST_BROWSER` names.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use flate2::read::ZlibDecoder;
use tempfile::TempDir;

/// The reason why tests are skipped without it.
pub const NO_BROWSER: &str = "there is no program chromium, and OLM_TEST_BROWSER names none";

/// Limit of one start, in seconds. It ends only a browser that hangs.
const LIMIT: &str = "120";

/// A browser with an empty profile.
pub struct Browser {
    program: OsString,
    profile: TempDir,
}

/// A screenshot.
pub struct Screenshot {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The first pixel: red, green, blue.
    pub corner: [u8; 3],
    /// The share of bytes that differ from what the neighbouring pixels predict: 0 for a blank picture.
    pub detail: f64,
}

impl Browser {
    /// Returns the browser of this machine, if it has one that starts.
    ///
    /// # Errors
    /// There is no temporary folder, or the browser that `OLM_TEST_BROWSER` names does not start.
    pub fn find() -> Result<Option<Self>> {
        let named = std::env::var_os("OLM_TEST_BROWSER");
        let program = named.clone().unwrap_or_else(|| "chromium".into());
        let browser = Self { program, profile: TempDir::new()? };
        match browser.run(&["--version"]) {
            Ok(output) if output.status.success() => Ok(Some(browser)),
            _ if named.is_none() => Ok(None),
            Ok(output) => anyhow::bail!("{}: {}", browser.program.display(), String::from_utf8_lossy(&output.stderr)),
            Err(error) => Err(error),
        }
    }

    /// Returns the document of a file after it was loaded, as markup.
    ///
    /// # Errors
    /// The browser fails.
    pub fn document(&self, file: &Path) -> Result<String> {
        let output = self.run(&["--dump-dom", &address(file)?])?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Takes a screenshot of a file, as on a dark display if `is_dark`.
    ///
    /// # Errors
    /// The browser fails, or the screenshot is not a picture.
    pub fn screenshot(&self, file: &Path, is_dark: bool) -> Result<Screenshot> {
        let picture = self.profile.path().join("picture.png");
        let save = format!("--screenshot={}", picture.display());
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark));
        let output = self.run(&["--hide-scrollbars", "--window-size=1200,1500", &scheme, &save, &address(file)?])?;
        let read = std::fs::read(&picture).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        std::fs::remove_file(&picture)?;
        // To look at them.
        if let Some(folder) = std::env::var_os("OLM_TEST_SCREENSHOTS") {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let theme = if is_dark { "-dark" } else { "" };
            std::fs::write(PathBuf::from(folder).join(format!("{name}{theme}.png")), &read)?;
        }
        Screenshot::read(&read)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(&self.program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.arg(format!("--user-data-dir={}", self.profile.path().join("profile").display()));
        command.args(arguments).env("HOME", self.profile.path()).stdin(Stdio::null());
        command.output().with_context(|| format!("cannot start {}", self.program.display()))
    }
}

impl Screenshot {
    /// Reads a PNG of 8 bits for each of red, green, blue, and possibly alpha.
    fn read(png: &[u8]) -> Result<Self> {
        let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").context("not a PNG")?;
        let (mut header, mut compressed) = (None, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*length))?;
            let (kind, after) = after.split_first_chunk::<4>().context("a chunk without a type")?;
            let data = after.get(..length).context("a chunk without data")?;
            match kind {
                b"IHDR" => header = Some(data),
                b"IDAT" => compressed.extend_from_slice(data),
                _ => {}
            }
            rest = after.get(length + 4..).unwrap_or_default();
        }
        let header = header.context("a PNG without a header")?;
        let number = |at: usize| -> Result<u32> {
            let bytes = header.get(at..at + 4).context("a short header")?;
            Ok(u32::from_be_bytes(bytes.try_into()?))
        };
        let (width, height) = (number(0)?, number(4)?);
        let samples = match header.get(8..10) {
            Some([8, 2]) => 3,
            Some([8, 6]) => 4,
            other => anyhow::bail!("an unknown kind of PNG: {other:?}"),
        };
        let mut filtered = Vec::new();
        ZlibDecoder::new(&compressed[..]).read_to_end(&mut filtered)?;
        let row = 1 + usize::try_from(width)? * samples;
        ensure!(filtered.len() == row * usize::try_from(height)?, "{} bytes", filtered.len());
        // Whatever the filter, nothing precedes the first pixel.
        let corner = [filtered[1], filtered[2], filtered[3]];
        let differing =
            filtered.chunks(row).skip(1).flat_map(|row| row.iter().skip(1 + samples)).filter(|byte| **byte != 0);
        #[expect(clippy::cast_precision_loss, reason = "a share needs no precision")]
        let detail = differing.count() as f64 / filtered.len() as f64;
        Ok(Self { width, height, corner, detail })
    }
}

fn address(file: &Path) -> Result<String> {
    Ok(format!("file://{}", file.canonicalize()?.display()))
}
