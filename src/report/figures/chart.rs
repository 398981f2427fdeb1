//! Charts as SVG, drawn by plotters.
//!
//! Series differ in colour (Okabe and Ito's palette, which colour-blind readers can distinguish), in the shape of their
//! markers and in the dashes of their lines, so that a greyscale print is as readable.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{Error, Result};
use crate::report::clean::cut_apart;
use crate::stats::Interval;

/// Colour of text, axes and grid. No series uses this colour, so a page can replace it by the colour of the page's
/// text.
pub const INK: &str = "#010203";
const INK_COLOR: RGBColor = RGBColor(1, 2, 3);

/// Okabe and Ito (2008), "Color Universal Design", without yellow, which is invisible on white, and black, which is the
/// text's colour.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Lengths of dashes and gaps in units; `None` for a solid line.
const DASHES: [Option<(i32, i32)>; 4] = [None, Some((7, 4)), Some((2, 3)), Some((12, 4))];

/// Maximum number of characters of a series' name in the legend.
const LONGEST_NAME: usize = 64;

/// A chart of rates over a numeric axis or a list of names.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The axis that doesn't show the rate.
    pub over: HorizontalAxis,
    /// Label of the rate, such as `pass@1, %`.
    pub rate: String,
    /// Series, in the order of the legend.
    pub series: Vec<Series>,
    /// A line of (x, rate) without markers, drawn behind the points. If there is such a line, the points of each series
    /// are not joined.
    pub line: Option<Vec<(f64, f64)>>,
}

/// The axis over which rates are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum HorizontalAxis {
    /// A quantity on a linear axis. The text is its name and unit.
    Quantity(String),
    /// A positive quantity on a logarithmic axis, because it spans orders of magnitude. The text is its name and unit.
    Orders(String),
    /// Names, one below the other; a point's `x` is the index of its name.
    Names(Vec<String>),
}

/// A named series of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, ascending by `x`.
    pub points: Vec<ChartPoint>,
    /// Index of the series' colour, marker and dashes; `None` to use its position among the chart's series.
    pub style: Option<usize>,
}

impl Chart {
    /// Returns the index of the colour, marker and dashes of the series with the index `place`.
    fn style(&self, place: usize) -> usize {
        self.series[place].style.unwrap_or(place)
    }
}

/// One rate in a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartPoint {
    /// Position on the axis that doesn't show the rate; see [`HorizontalAxis`].
    pub x: f64,
    /// Rate from 0 to 1.
    pub rate: f64,
    /// Confidence interval of the rate.
    pub interval: Option<Interval>,
}

/// The size of a drawing.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    /// Width in the SVG's own units.
    pub width: u32,
    /// Height without the legend.
    pub height: u32,
    /// Units per screen pixel. Small drawings need several units per pixel, because the backend rounds to whole units.
    pub scale: u32,
}

impl Canvas {
    /// Size for a web page.
    pub const SCREEN: Self = Self { width: 720, height: 360, scale: 1 };
    /// Size for print: 5.5 by about 3 inches, the width of a text column at the large conferences.
    #[cfg(feature = "figures")]
    pub const PRINT: Self = Self { width: 2112, height: 1088, scale: 4 };

    fn units(self, pixels: i32) -> i32 {
        pixels * self.scale as i32
    }

    fn font<'a>(self, pixels: u32) -> TextStyle<'a> {
        ("sans-serif", pixels * self.scale).into_font().color(&INK_COLOR)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the chart as an SVG document.
///
/// # Errors
/// Kind `Internal` if drawing fails.
pub fn draw(chart: &Chart, canvas: Canvas) -> Result<String> {
    let mut text = String::new();
    let names = match &chart.over {
        HorizontalAxis::Names(names) => names.len(),
        HorizontalAxis::Quantity(_) | HorizontalAxis::Orders(_) => 0,
    };
    let legend = canvas.units(22) * rows_of_legend(chart, canvas).len() as i32;
    let body = if names > 0 {
        let row = (6 + 16 * chart.series.len() as i32).max(34);
        canvas.units(56 + row * names as i32)
    } else {
        canvas.height as i32
    };
    {
        let area = SVGBackend::with_string(&mut text, (canvas.width, (body + legend) as u32)).into_drawing_area();
        let drawn = match &chart.over {
            HorizontalAxis::Quantity(label) | HorizontalAxis::Orders(label) => {
                over_quantity(chart, label, &area.margin(0, legend, 0, 0), canvas)
            }
            HorizontalAxis::Names(names) => over_names(chart, names, &area.margin(0, legend, 0, 0), canvas),
        };
        drawn
            .and_then(|()| draw_legend(chart, &area, body, canvas))
            .and_then(|()| area.present().map_err(Into::into))
            .map_err(|error| Error::internal(format!("failed to draw a chart: {error}")))?;
    }
    Ok(text)
}

type ChartResult = Result<(), Box<dyn std::error::Error>>;

fn over_quantity(chart: &Chart, label: &str, area: &Area<'_>, canvas: Canvas) -> ChartResult {
    let is_log = matches!(chart.over, HorizontalAxis::Orders(_));
    let place_of = |x: f64| if is_log { x.log10() } else { x };
    let xs = || chart.series.iter().flat_map(|series| series.points.iter().map(|point| place_of(point.x)));
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let has_range = high > low;
    let margin = if has_range { (high - low) * 0.04 } else { 0.5 };
    // Shift the series sideways, so that intervals at the same x don't hide each other: by the width of a whisker, or by
    // less if a series would otherwise come too close to the next x.
    let mut different: Vec<f64> = xs().collect();
    different.sort_by(f64::total_cmp);
    different.dedup();
    let nearest = different.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let has_several = different.len() < xs().count();
    let others = (chart.series.len() as f64 - 1.0).max(1.0);
    let per_pixel = (high - low + 2.0 * margin) / f64::from((canvas.width as i32 - canvas.units(82)).max(1));
    let widest = per_pixel * f64::from(canvas.units(11));
    let apart = if has_several { widest.min(0.4 * nearest / others) } else { 0.0 };
    // Widen the axis, so that it has room for series that are shifted beyond the first or the last x.
    let room = if has_several && has_range { margin.max(0.5 * apart * others + widest) } else { margin };
    // A short range of whole numbers, such as n, gets one tick per number.
    let whole = !is_log && xs().all(|x| x.fract() == 0.0);
    let marks = if whole { ((high - low) as usize).saturating_add(1).min(10) } else { 8 };
    let between = (high - low + 2.0 * room) / marks as f64;
    let mut context = ChartBuilder::on(area)
        .margin(canvas.units(8))
        .margin_right(canvas.units(16))
        .x_label_area_size(canvas.units(40))
        .y_label_area_size(canvas.units(58))
        .build_cartesian_2d(low - room..high + room, 0.0..100.0_f64)?;
    context
        .configure_mesh()
        .x_labels(marks.max(2))
        .y_labels(6)
        .x_label_formatter(&|x| match (whole && x.fract().abs() > 1e-9, is_log) {
            (true, _) => String::new(),
            (_, true) => number(10_f64.powf(*x), 10_f64.powf(*x) * (10_f64.powf(between) - 1.0)),
            _ => number(*x, between),
        })
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_desc(label)
        .y_desc(&chart.rate)
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK_COLOR.mix(0.15).stroke_width(canvas.scale))
        .axis_style(INK_COLOR.stroke_width(canvas.scale))
        .label_style(canvas.font(13))
        .axis_desc_style(canvas.font(14))
        .draw()?;
    if let Some(points) = &chart.line {
        let line: Vec<_> = points.iter().map(|&(x, rate)| (place_of(x), 100.0 * rate)).collect();
        let style = INK_COLOR.mix(0.6).stroke_width(canvas.scale * 3 / 2);
        context.draw_series(DashedLineSeries::new(line, canvas.units(5), canvas.units(4), style))?;
    }
    for (place, series) in chart.series.iter().enumerate() {
        let style_index = chart.style(place);
        let color = PALETTE[style_index % PALETTE.len()];
        let beside = apart * (place as f64 - (chart.series.len() as f64 - 1.0) / 2.0);
        let at = |point: &ChartPoint| (place_of(point.x) + beside, 100.0 * point.rate);
        let line: Vec<(f64, f64)> = series.points.iter().map(at).collect();
        let style = color.stroke_width(2 * canvas.scale);
        match DASHES[style_index % DASHES.len()] {
            None => {
                context.draw_series(LineSeries::new(line, style))?;
            }
            Some((dash, gap)) => {
                let (dash, gap) = (canvas.units(dash), canvas.units(gap));
                context.draw_series(DashedLineSeries::new(line, dash, gap, style))?;
            }
        }
        for point in &series.points {
            if let Some(bounds) = point.interval {
                let (x, _) = at(point);
                let (low, high) = (100.0 * bounds.low, 100.0 * bounds.high);
                let style = color.stroke_width(canvas.scale * 3 / 2);
                context.draw_series([PathElement::new(vec![(x, low), (x, high)], style)])?;
                let cap = canvas.units(4);
                for bound in [low, high] {
                    context.draw_series([
                        EmptyElement::at((x, bound)) + PathElement::new(vec![(-cap, 0), (cap, 0)], style)
                    ])?;
                }
            }
        }
        for point in &series.points {
            let pixel = context.backend_coord(&at(point));
            marker(area, pixel, style_index, canvas)?;
        }
    }
    Ok(())
}

/// Draws a list of names from top to bottom. The row of each name has the points of the series, one below the other.
fn over_names(chart: &Chart, names: &[String], area: &Area<'_>, canvas: Canvas) -> ChartResult {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or_default() as i32;
    let left = canvas.units((longest * 7 + 24).min(280));
    let (width, height) = area.dim_in_pixel();
    let (right, top, bottom) = (width as i32 - canvas.units(16), canvas.units(10), height as i32 - canvas.units(42));
    let x = |rate: f64| left + (f64::from(right - left) * rate) as i32;
    let faint = INK_COLOR.mix(0.15).stroke_width(canvas.scale);
    for tenth in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        area.draw(&PathElement::new(vec![(x(tenth), top), (x(tenth), bottom)], faint))?;
        let style = canvas.font(13).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&format!("{:.0}", 100.0 * tenth), &style, (x(tenth), bottom + canvas.units(6)))?;
    }
    area.draw(&PathElement::new(vec![(left, bottom), (right, bottom)], INK_COLOR.stroke_width(canvas.scale)))?;
    let style = canvas.font(14).pos(Pos::new(HPos::Center, VPos::Bottom));
    area.draw_text(&chart.rate, &style, (i32::midpoint(left, right), height as i32 - canvas.units(2)))?;
    let row = f64::from(bottom - top) / names.len().max(1) as f64;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (place, name) in cut_apart(&names, 36).iter().enumerate() {
        let style = canvas.font(13).pos(Pos::new(HPos::Right, VPos::Center));
        let middle = top + (row * (place as f64 + 0.5)) as i32;
        area.draw_text(name, &style, (left - canvas.units(10), middle))?;
        if place > 0 {
            let y = top + (row * place as f64) as i32;
            area.draw(&PathElement::new(vec![(left, y), (right, y)], faint))?;
        }
    }
    for (place, series) in chart.series.iter().enumerate() {
        let style_index = chart.style(place);
        let color = PALETTE[style_index % PALETTE.len()];
        let beside = (place as f64 + 1.0) / (chart.series.len() as f64 + 1.0);
        for point in &series.points {
            let y = top + (row * (point.x + beside)) as i32;
            if let Some(bounds) = point.interval {
                let style = color.stroke_width(canvas.scale * 3 / 2);
                let cap = canvas.units(4);
                area.draw(&PathElement::new(vec![(x(bounds.low), y), (x(bounds.high), y)], style))?;
                for bound in [bounds.low, bounds.high] {
                    area.draw(&PathElement::new(vec![(x(bound), y - cap), (x(bound), y + cap)], style))?;
                }
            }
            marker(area, (x(point.rate), y), style_index, canvas)?;
        }
    }
    Ok(())
}

/// Draws the marker of the series with this index.
fn marker(area: &Area<'_>, at: (i32, i32), place: usize, canvas: Canvas) -> ChartResult {
    let style = PALETTE[place % PALETTE.len()].filled();
    let r = canvas.units(5);
    let (x, y) = at;
    // The seventh series has the first one's colour and another shape.
    match (place + place / PALETTE.len()) % 6 {
        0 => area.draw(&Circle::new(at, r, style))?,
        1 => area.draw(&Rectangle::new([(x - r, y - r), (x + r, y + r)], style))?,
        2 => area.draw(&Polygon::new(vec![(x, y - r - r / 4), (x + r, y + r), (x - r, y + r)], style))?,
        3 => area.draw(&Polygon::new(vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)], style))?,
        4 => area.draw(&Polygon::new(vec![(x, y + r + r / 4), (x + r, y - r), (x - r, y - r)], style))?,
        _ => {
            let line = PALETTE[place % PALETTE.len()].stroke_width(2 * canvas.scale);
            area.draw(&PathElement::new(vec![(x - r, y - r), (x + r, y + r)], line))?;
            area.draw(&PathElement::new(vec![(x - r, y + r), (x + r, y - r)], line))?;
        }
    }
    Ok(())
}

/// Lays out the legend: for each row, its series with their left edges.
fn rows_of_legend(chart: &Chart, canvas: Canvas) -> Vec<Vec<(usize, i32)>> {
    let mut rows: Vec<Vec<(usize, i32)>> = Vec::new();
    let mut left = i32::MAX;
    for (place, series) in chart.series.iter().enumerate() {
        let width = canvas.units(52 + 7 * series.name.chars().count().min(LONGEST_NAME) as i32);
        if left.saturating_add(width) > canvas.width as i32 {
            rows.push(Vec::new());
            left = canvas.units(16);
        }
        if let Some(row) = rows.last_mut() {
            row.push((place, left));
        }
        left += width;
    }
    rows
}

fn draw_legend(chart: &Chart, area: &Area<'_>, body: i32, canvas: Canvas) -> ChartResult {
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    let names = cut_apart(&names, LONGEST_NAME);
    for (row, entries) in rows_of_legend(chart, canvas).into_iter().enumerate() {
        let y = body + canvas.units(22 * row as i32 + 8);
        for (place, left) in entries {
            let style_index = chart.style(place);
            let style = PALETTE[style_index % PALETTE.len()].stroke_width(2 * canvas.scale);
            let (from, to) = (left, left + canvas.units(26));
            if series_are_lines(chart) {
                let (dash, gap) = DASHES[style_index % DASHES.len()].unwrap_or((26, 0));
                let mut at = from;
                while at < to {
                    let end = (at + canvas.units(dash)).min(to);
                    area.draw(&PathElement::new(vec![(at, y), (end, y)], style))?;
                    at = end + canvas.units(gap).max(1);
                }
            }
            marker(area, (i32::midpoint(from, to), y), style_index, canvas)?;
            let text = canvas.font(13).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text(&names[place], &text, (to + canvas.units(6), y))?;
        }
    }
    Ok(())
}

/// Whether the points of a series are joined by lines.
const fn series_are_lines(chart: &Chart) -> bool {
    !matches!(chart.over, HorizontalAxis::Names(_)) && chart.line.is_none()
}

/// Formats a number on an axis, with thousands as `12k`. The text has enough digits to differ from the text of a number
/// that is `between` larger or smaller.
fn number(x: f64, between: f64) -> String {
    let (x, between, unit) = if x.abs() >= 10_000.0 { (x / 1e3, between / 1e3, "k") } else { (x, between, "") };
    let digits = (0.5 - between.abs().max(1e-9).log10()).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{x:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_an_axis_have_enough_digits_to_differ() {
        let labels: Vec<String> = (0..5).map(|i| number(0.0815 + 0.0002 * f64::from(i), 0.0002)).collect();
        assert_eq!(labels, ["0.0815", "0.0817", "0.0819", "0.0821", "0.0823"]);
        assert_eq!([0.0, 1.0, 2.5].map(|x| number(x, 0.5)), ["0", "1", "2.5"]);
        assert_eq!([12_000.0, 12_500.0].map(|x| number(x, 500.0)), ["12k", "12.5k"]);
    }

    #[test]
    fn markers_of_ten_contenders_stay_near_their_n_and_inside_the_axes() {
        let point = |x: f64| ChartPoint { x, rate: 0.5, interval: Some(Interval { low: 0.2, high: 0.8 }) };
        let series = (0..10).map(|number| Series {
            name: format!("agent {number}"),
            points: vec![point(1.0), point(2.0), point(3.0)],
            style: None,
        });
        let over = HorizontalAxis::Quantity("n".to_owned());
        let chart = Chart { over, rate: "pass@1, %".to_owned(), series: series.collect(), line: None };
        let svg = draw(&chart, Canvas::SCREEN).unwrap();
        let attribute = |line: &str, name: &str| -> Option<f64> {
            line.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.parse().ok()
        };
        // Only the first series has circles as markers. The distance between the first two circles is the width of one
        // step of x.
        let body = svg.lines().filter(|line| line.starts_with("<circle"));
        let centres: Vec<f64> = body.filter_map(|line| attribute(line, "cx")).collect();
        assert!(centres.len() >= 3, "{svg}");
        let step = centres[1] - centres[0];
        let first_axis = 58.0;
        assert!(centres[0] > first_axis && step > 0.0, "{centres:?}");
    }
}
