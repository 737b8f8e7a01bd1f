//! Pages of `-o html`: one file that needs no network and no script, for light and dark displays and for printing.
//!
//! ```text
//!   a document that a command prints --command's page module--> Markup (olm-core) --page--> head, style sheets, body
//! ```
//!
//! *Guarantees*: all text is escaped by [`Markup`]. The content security policy permits nothing but the style sheets of the page, by their
//! digests, so that not even markup that is smuggled in could load or execute anything. The size of a page is bounded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olm_core::markup::{Attribute, Markup};
use sha2::{Digest as _, Sha256};

use super::paint::Tone;

/// Maximum size of a page in bytes. Lists end with a note when it is reached.
const LIMIT: usize = 4 << 20;

/// Maximum number of characters of a phrase.
const PHRASE: usize = 4096;

/// Maximum size of one diff in bytes.
const DIFF: usize = 256 << 10;

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1f2937;--soft:#6b7280;--ground:#fff;--card:#f9fafb;--line:#e5e7eb;--good:#15803d;--bad:#b91c1c;
--doubt:#b45309;--link:#0369a1;--goodbg:#f0fdf4;--badbg:#fef2f2;--doubtbg:#fffbeb;--codebg:#f3f4f6;--addbg:#e6ffec;--delbg:#ffebe9}
@media (prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#9ca3af;--ground:#111827;--card:#1b2433;--line:#2b3648;--good:#4ade80;
--bad:#f87171;--doubt:#fbbf24;--link:#38bdf8;--goodbg:#0f2a1b;--badbg:#321818;--doubtbg:#30250e;--codebg:#1f2937;--addbg:#12351f;
--delbg:#45191c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:84rem;padding:1.5rem 1.25rem 3rem;font:15px/1.5 system-ui,'Segoe UI',sans-serif;color:var(--ink);
background:var(--ground)}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.12rem;margin:1.9rem 0 .5rem;padding-bottom:.25rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.2rem 0 .4rem;overflow-wrap:anywhere}
p{margin:.4rem 0}a{color:var(--link)}
ul{margin:.3rem 0;padding-left:1.2rem}li{margin:.2rem 0;overflow-wrap:anywhere}
ul.under{color:var(--soft);font-size:.93em}
article+article{margin-top:3rem;padding-top:1.5rem;border-top:3px double var(--line)}
.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}.doubtful{color:var(--doubt)}
.banner{border:1px solid var(--line);border-left-width:6px;border-radius:6px;padding:.7rem 1rem;margin:.8rem 0;background:var(--card)}
.banner>p:first-child{margin:0;font-weight:600}.banner.good,.banner.bad,.banner.doubtful{color:var(--ink)}
.banner.good{border-color:var(--good);background:var(--goodbg)}.banner.good>p:first-child{color:var(--good)}
.banner.bad{border-color:var(--bad);background:var(--badbg)}.banner.bad>p:first-child{color:var(--bad)}
.banner.doubtful{border-color:var(--doubt);background:var(--doubtbg)}.banner.doubtful>p:first-child{color:var(--doubt)}
.facts{display:flex;flex-wrap:wrap;gap:.5rem;margin:.8rem 0;padding:0;list-style:none}
.facts li{border:1px solid var(--line);border-radius:6px;background:var(--card);padding:.25rem .7rem;margin:0}
.facts b{font-size:1.1em}
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:13px}
code{background:var(--codebg);border-radius:4px;padding:.1em .35em;overflow-wrap:anywhere}
pre{margin:.3rem 0 .6rem;border:1px solid var(--line);border-radius:6px;padding:.4rem 0;overflow-x:auto;line-height:1.4;tab-size:2}
pre>span{display:block;padding:0 .8rem;min-width:max-content;white-space:pre}
pre>.add{background:var(--addbg)}pre>.del{background:var(--delbg)}pre>.at{color:var(--soft)}
details{margin:.25rem 0}summary{cursor:pointer;overflow-wrap:anywhere}summary:hover{color:var(--link)}
details.card{border:1px solid var(--line);border-radius:6px;padding:.4rem .8rem;background:var(--card)}
details.card>summary{font-weight:600}
.count{font-size:.85em;color:var(--soft);white-space:nowrap;font-weight:400}
.scroll{overflow-x:auto}.pair{display:flex;flex-wrap:wrap;gap:.5rem 2.5rem;align-items:flex-start}
.pair>.scroll{flex:1 1 30rem;min-width:0}.pair>.scroll:first-child{flex:0 1 auto}
table{border-collapse:collapse;margin:.4rem 0;font-size:.93em}
th,td{border-bottom:1px solid var(--line);padding:.3rem .7rem .3rem 0;text-align:left;vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:nowrap}th.long{white-space:normal;overflow-wrap:anywhere}
td.wide{min-width:16rem;overflow-wrap:anywhere}td.name{white-space:nowrap}tr.quiet td{color:var(--soft)}
.state{font-weight:600;white-space:nowrap}.gone{text-decoration:line-through}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem .9rem;margin:.4rem 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.mark{color:var(--doubt);font-weight:600}
@media print{body{max-width:none;padding:0;font-size:11px}details::details-content{content-visibility:visible;display:block;height:auto}
.scroll{overflow:visible}pre{white-space:pre-wrap}pre>span{white-space:pre-wrap;min-width:0}h2,h3,summary{break-after:avoid}
tr,.banner{break-inside:avoid}.graph{max-width:100%;height:auto}}
";

/// Returns a page with this title, whose body may use the style sheets `sheets` besides that of all pages.
pub(crate) fn page(title: &str, sheets: &[&'static str], body: impl FnOnce(&mut Markup)) -> String {
    let sheets: Vec<&'static str> = std::iter::once(STYLE).chain(sheets.iter().copied()).collect();
    let digests: Vec<String> =
        sheets.iter().map(|sheet| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(sheet)))).collect();
    let policy = format!("default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", digests.join(" "));
    let namespace: &str = "http://www.w3.org/1999/xhtml";
    let mut page = Markup::html();
    page.element("html", &[("xmlns", &namespace), ("lang", &"en")], |html| {
        html.newline();
        html.element("head", &[], |head| {
            head.void("meta", &[("charset", &"utf-8")]);
            head.newline();
            head.void("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
            head.newline();
            head.void("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
            head.void("meta", &[("name", &"referrer"), ("content", &"no-referrer")]);
            head.newline();
            head.leaf("title", &[], &clipped(title));
            head.newline();
            for sheet in sheets {
                head.style(sheet);
                head.newline();
            }
        });
        html.newline();
        html.element("body", &[], |inner| {
            inner.newline();
            body(inner);
        });
        html.newline();
    });
    page.newline();
    page.into_string()
}

/// Draws items until the page has its maximum size, and returns how many are left out.
#[must_use]
pub(crate) fn bounded<T>(
    out: &mut Markup,
    items: impl IntoIterator<Item = T>,
    mut draw: impl FnMut(&mut Markup, T),
) -> usize {
    let mut items = items.into_iter();
    while out.len() < LIMIT {
        let Some(item) = items.next() else { return 0 };
        draw(out, item);
    }
    items.count()
}

/// Adds a note about what [`bounded`] left out, if it did.
pub(crate) fn left_out(out: &mut Markup, count: usize, what: &str) {
    if count > 0 {
        let note = format!("{count} more {what} are left out: a page has at most 4 MiB. -o json prints all of them.");
        span(out, "p", "soft", &note);
    }
}

/// Adds a list of lines.
pub(crate) fn list(out: &mut Markup, class: &'static str, lines: &[String], what: &str) {
    let mut rest = 0;
    let attributes: &[Attribute<'_>] = if class.is_empty() { &[] } else { &[("class", &class)] };
    out.element("ul", attributes, |list| {
        rest = bounded(list, lines, |list, line| span(list, "li", "", line));
    });
    out.newline();
    left_out(out, rest, what);
}

/// Adds a table. `draw` adds the cells of a row.
pub(crate) fn table<'t, T>(
    out: &mut Markup,
    titles: impl IntoIterator<Item = &'t str>,
    rows: &[T],
    what: &str,
    draw: impl Fn(&mut Markup, &T),
) {
    let mut rest = 0;
    out.element("div", &[("class", &"scroll")], |scroll| {
        scroll.element("table", &[], |table| {
            table.element("tr", &[], |row| titles.into_iter().for_each(|title| span(row, "th", "", title)));
            table.newline();
            rest = bounded(table, rows, |table, one| {
                table.element("tr", &[], |row| draw(row, one));
                table.newline();
            });
        });
    });
    out.newline();
    left_out(out, rest, what);
}

/// Adds text of a limited length.
pub(crate) fn phrase(out: &mut Markup, text: &str) {
    out.text(&clipped(text));
}

/// Adds an element of a class with text of a limited length.
pub(crate) fn span(out: &mut Markup, name: &'static str, class: &'static str, text: &str) {
    let text = clipped(text);
    if class.is_empty() {
        out.leaf(name, &[], &text);
    } else {
        out.leaf(name, &[("class", &class)], &text);
    }
}

/// Returns the class of a tone.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Bad => "bad",
    }
}

/// Adds numbers with their meanings: `3 versions`.
pub(crate) fn facts(out: &mut Markup, facts: &[(String, &str, Tone)]) {
    out.element("ul", &[("class", &"facts")], |list| {
        for (number, words, tone) in facts {
            list.element("li", &[], |item| {
                span(item, "b", class(*tone), number);
                phrase(item, &format!(" {words}"));
            });
        }
    });
    out.newline();
}

/// Adds a unified diff. Its end is left out if it is long.
pub(crate) fn diff(out: &mut Markup, diff: &str) {
    let start = out.len();
    let kind = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "add",
        Some(b'-') => "del",
        Some(b'@') => "at",
        _ => "",
    };
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    out.element("pre", &[], |pre| {
        let mut shown = 0;
        'runs: for run in lines.chunk_by(|a, b| kind(a) == kind(b)) {
            let class = kind(run[0]);
            let mut text = String::new();
            for line in run {
                if pre.len() - start + text.len() > DIFF {
                    span(pre, "span", "at", &format!("… {} more lines; -o json has them", lines.len() - shown));
                    break 'runs;
                }
                text += &clipped(line.strip_suffix('\n').unwrap_or(line));
                text.push('\n');
                shown += 1;
            }
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let attributes: &[Attribute<'_>] = if class.is_empty() { &[] } else { &[("class", &class)] };
            pre.element("span", attributes, |span| span.lines(text));
        }
    });
}

/// Returns the numbers of added and removed lines of a diff: `+3 −1`.
pub(crate) fn changes(diff: &str) -> String {
    let count = |sign: char| diff.lines().filter(|line| line.starts_with(sign)).count();
    match (count('+'), count('-')) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("−{removed}"),
        (added, removed) => format!("+{added} −{removed}"),
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(PHRASE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_permits_only_its_own_style_sheets() {
        let page = page("<b>", &["i{}"], |body| phrase(body, "</body>"));
        assert!(page.starts_with("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">"));
        assert!(page.contains("<title>&lt;b&gt;</title>") && page.contains("\n&lt;/body&gt;</body>"), "{page}");
        assert_eq!(page.matches("sha256-").count(), 2);
        assert!(page.contains("content=\"default-src &#39;none&#39;; style-src &#39;sha256-"), "{page}");
        assert_eq!(page.matches("http").count(), 2, "the namespace, and http-equiv: {page}");
    }

    #[test]
    fn style_sheets_contain_nothing_that_ends_them() {
        for sheet in [STYLE, olm_core::catalog::graph::STYLE] {
            assert!(
                !sheet.contains(['<', '&', '\\']) && !sheet.contains("url(") && !sheet.contains("import"),
                "{sheet}"
            );
        }
    }

    #[test]
    fn sizes_are_bounded() {
        let mut out = Markup::default();
        let long = "x".repeat(1 << 20);
        let rest = bounded(&mut out, (0..1_000_000).map(|_| &long), |out, line| phrase(out, line));
        left_out(&mut out, rest, "lines");
        assert!(out.len() < LIMIT + 2 * PHRASE, "{}", out.len());
        assert!(out.into_string().contains(" more lines are left out: a page has at most 4 MiB."));
        let mut out = Markup::default();
        let lines: String = (0..1_000_000).map(|n| format!("+ <{n}>\n")).collect();
        diff(&mut out, &lines);
        assert!(out.len() < 3 * DIFF, "{}", out.len());
        assert!(out.into_string().contains(" more lines; -o json has them"));
    }

    #[test]
    fn a_diff_is_marked_by_line() {
        let mut out = Markup::default();
        let text = "@@ -1,2 +1,2 @@\n spec:\n-  a: <b>\n+  a: c\n+  d: e\n";
        diff(&mut out, text);
        let shown = "<pre><span class=\"at\">@@ -1,2 +1,2 @@</span><span> spec:</span><span class=\"del\">-  a: &lt;b&gt;</span>\
                     <span class=\"add\">+  a: c\n+  d: e</span></pre>";
        assert_eq!(out.into_string(), shown);
        assert_eq!([changes(text), changes(""), changes("+a")], ["+2 −1", "", "+1"]);
    }
}
