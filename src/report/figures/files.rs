//! Figures as files for print: SVG as drawn, PDF and PNG converted from it.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::FigureFiles;
use super::chart::{Canvas, Chart, INK, draw};
use crate::error::{Error, Result};

/// Resolution of a PNG in pixels per inch.
const DPI: f32 = 300.0;

/// Number of units per inch in a drawing on [`Canvas::PRINT`].
const UNITS: f32 = 384.0;

/// Draws a chart 5.5 inches wide and converts it to all formats.
///
/// # Errors
/// Kind `Machine` if no font is installed, `Internal` if drawing or conversion fails.
pub fn files(chart: &Chart) -> Result<FigureFiles> {
    let drawn = draw(chart, Canvas::PRINT)?.replace(INK, "#000000");
    let svg = in_inches(&drawn);
    let failed = |error: &dyn std::fmt::Display| Error::internal(format!("failed to convert a figure: {error}"));
    let options = options()?;
    let tree = Tree::from_str(&drawn, &options).map_err(|error| failed(&error))?;
    let page = svg2pdf::PageOptions { dpi: UNITS };
    let pdf = svg2pdf::to_pdf(&tree, svg2pdf::ConversionOptions::default(), page).map_err(|error| failed(&error))?;
    let scale = DPI / UNITS;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).round() as u32, (size.height() * scale).round() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed(&"a figure without size"))?;
    pixels.fill(resvg::tiny_skia::Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    let png = pixels.encode_png().map_err(|error| failed(&error))?;
    Ok(FigureFiles { svg, pdf, png })
}

/// Replaces the drawing's size in units by its size in inches.
fn in_inches(svg: &str) -> String {
    let mut out = svg.to_owned();
    for side in ["width", "height"] {
        let begin = format!("{side}=\"");
        // The first `width` or `height` attribute in the text is the root element's.
        let Some(start) = out.find(&begin).map(|at| at + begin.len()) else { continue };
        let Some(end) = out[start..].find('"').map(|length| start + length) else { continue };
        if let Ok(units) = out[start..end].parse::<f32>() {
            out.replace_range(start..end, &format!("{:.3}in", units / UNITS));
        }
    }
    out
}

/// Options for reading the SVG, with this machine's fonts.
fn options() -> Result<Options<'static>> {
    static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        let known = ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans", "Noto Sans"];
        let has = |name: &str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
        let chosen = known.into_iter().find(|name| has(name)).map(str::to_owned);
        let any = || fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
        if let Some(name) = chosen.or_else(any) {
            fonts.set_sans_serif_family(name);
        }
        Arc::new(fonts)
    });
    if FONTS.is_empty() {
        return Err(Error::machine("no font is installed, but figures as PNG and PDF need one")
            .hint("install one, such as Debian's package `fonts-dejavu-core`"));
    }
    Ok(Options {
        fontdb: FONTS.clone(),
        font_family: FONTS.family_name(&fontdb::Family::SansSerif).to_owned(),
        ..Options::default()
    })
}
