"""The style sheet of explanations: light, dark and print, and never colour alone.

What speaks for the class shown is blue and underlined solid, what speaks against it orange and
underlined dotted. Both colours are told apart with all common kinds of colour blindness, and text
keeps a contrast of 4.5 to 1 on every shade.
"""

from __future__ import annotations

N_SHADES = 5
"""Levels of shading by contribution."""

N_OUTLINES = 3
"""Levels of outlining by attention."""

# Opacity of each shade, on white and on black.
LIGHT = {
    "paper": (255, 255, 255),
    "ink": (24, 28, 34),
    "muted": (93, 101, 113),
    "rule": (212, 217, 224),
    "for": (0, 104, 178),
    "against": (222, 110, 0),
}
DARK = {
    "paper": (22, 25, 30),
    "ink": (236, 239, 243),
    "muted": (158, 168, 181),
    "rule": (58, 66, 77),
    "for": (72, 160, 226),
    "against": (226, 130, 28),
}
LIGHT_SHADES = (0.10, 0.20, 0.31, 0.43, 0.55)
DARK_SHADES = (0.15, 0.25, 0.34, 0.43, 0.52)


def _variables(palette: dict[str, tuple[int, int, int]], shades: tuple[float, ...]) -> str:
    colors = [f"--{name}:{r},{g},{b}" for name, (r, g, b) in palette.items()]
    return ";".join(colors + [f"--s{at}:{alpha}" for at, alpha in enumerate(shades, 1)])


def _shades() -> str:
    return "".join(
        f".clsattn .{letter}{at}{{background:rgba(var(--{side}),var(--s{at}))}}"
        for letter, side in (("p", "for"), ("n", "against"))
        for at in range(1, N_SHADES + 1)
    )


STYLE = (
    # A notebook may be light where the system is dark: paper and ink always come together.
    f".clsattn{{{_variables(LIGHT, LIGHT_SHADES)};color-scheme:light}}"
    "@media screen and (prefers-color-scheme:dark){"
    f".clsattn{{{_variables(DARK, DARK_SHADES)};color-scheme:dark}}}}"
    + """
.clsattn{box-sizing:border-box;max-width:60rem;margin:0 auto;padding:1rem;text-align:left;
 background:rgb(var(--paper));color:rgb(var(--ink));line-height:1.5;
 font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 print-color-adjust:exact;-webkit-print-color-adjust:exact}
.clsattn *{box-sizing:border-box}
.clsattn .doc{border-top:1px solid rgb(var(--rule));padding:1.1rem 0 1.4rem;margin:0}
.clsattn .head{display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline;margin:0 0 .7rem}
.clsattn .head .no{color:rgb(var(--muted));font-variant-numeric:tabular-nums}
.clsattn .head b{font-size:1.15rem}
.clsattn .wrong{border:2px solid currentColor;border-radius:.3rem;padding:0 .4rem;font-weight:600}
.clsattn .soft{color:rgb(var(--muted))}
.clsattn .small{font-size:.85rem}
.clsattn .legend{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:0 0 1rem;
 font-size:.85rem;color:rgb(var(--muted));line-height:1.9}
.clsattn .legend .t{color:rgb(var(--ink))}
.clsattn .bar{position:relative;margin:.2rem 0;padding:.3rem 0;height:3.5rem}
.clsattn .row{position:absolute;left:0;right:0;height:1.3rem}
.clsattn .row i{position:absolute;top:0;bottom:0;font-style:normal;font-size:.75rem;
 line-height:1.2rem;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;
 border:1px solid rgb(var(--for));background:rgba(var(--for),var(--s3));color:rgb(var(--ink))}
.clsattn .row bdi{padding:0 .25rem}
.clsattn .row.minus i{border:1px dashed rgb(var(--against));
 background:rgba(var(--against),var(--s3))}
.clsattn .row i.rest{background:rgba(var(--for),var(--s1))}
.clsattn .row.minus i.rest{background:rgba(var(--against),var(--s1))}
.clsattn .mark{position:absolute;top:0;bottom:0;width:0;border-left:2px solid rgb(var(--ink))}
.clsattn .mark.zero{border-left:1px dotted rgb(var(--muted))}
.clsattn .mark.start{border-left:2px solid rgb(var(--muted));bottom:50%}
.clsattn .mark.end{border-left:4px solid rgb(var(--ink));margin-left:-2px;top:40%}
.clsattn .sum{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:0 0 .9rem;font-size:.9rem;
 font-variant-numeric:tabular-nums}
.clsattn .sum b{white-space:nowrap}
.clsattn .text{white-space:pre-wrap;overflow-wrap:anywhere;line-height:2.3;margin:.5rem 0;
 color:rgb(var(--muted));unicode-bidi:isolate}
.clsattn .joined{white-space:normal}
.clsattn .joined .t{margin-right:.35rem}
.clsattn h4{margin:.6rem 0 0;font-size:.85rem;color:rgb(var(--muted));font-weight:600}
.clsattn .t{color:rgb(var(--ink));border-radius:.2rem;text-decoration-thickness:2px;
 text-underline-offset:.18em;text-decoration-skip-ink:none}
.clsattn .p2,.clsattn .p3,.clsattn .p4,.clsattn .p5{text-decoration-line:underline;
 text-decoration-style:solid;text-decoration-color:rgb(var(--for))}
.clsattn .n2,.clsattn .n3,.clsattn .n4,.clsattn .n5{text-decoration-line:underline;
 text-decoration-style:dotted;text-decoration-color:rgb(var(--against))}
"""
    + _shades()
    + """
.clsattn .a1{outline:1px solid rgba(var(--ink),.28)}
.clsattn .a2{outline:1px solid rgba(var(--ink),.62)}
.clsattn .a3{outline:2px solid rgba(var(--ink),.8)}
.clsattn .g{border-bottom:2px solid rgb(var(--for))}
.clsattn .g.minus{border-bottom:2px dashed rgb(var(--against))}
.clsattn .l0{padding-bottom:.22em}
.clsattn .l1{padding-bottom:.44em}
.clsattn .l2{padding-bottom:.66em}
.clsattn .lists{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));
 gap:.8rem 2rem;margin:.8rem 0 .4rem}
.clsattn table{border-collapse:collapse;width:100%;font-size:.875rem;margin:0;align-self:start;
 font-variant-numeric:tabular-nums;color:inherit;background:none;table-layout:auto}
.clsattn tr{background:none!important}
.clsattn caption{text-align:left;font-weight:600;padding:0 0 .2rem;color:inherit;
 caption-side:top}
.clsattn th,.clsattn td{padding:.14rem .3rem;text-align:right;border:0;background:none;
 border-bottom:1px solid rgb(var(--rule));font-weight:400;white-space:nowrap;color:inherit}
.clsattn thead th{color:rgb(var(--muted));font-size:.78rem;vertical-align:bottom;white-space:normal}
.clsattn tbody th{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:6rem}
.clsattn thead th:first-child{text-align:left}
.clsattn td .size{display:inline-block;height:.62rem;margin-right:.4rem;vertical-align:middle;
 background:rgba(var(--for),var(--s5));border:1px solid rgb(var(--for))}
.clsattn .minus td .size{background:rgba(var(--against),var(--s5));
 border:1px dashed rgb(var(--against))}
.clsattn .classes{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;list-style:none;margin:0 0 .6rem;
 padding:0;font-size:.875rem;font-variant-numeric:tabular-nums}
@media print{.clsattn{max-width:none;padding:0}.clsattn .head,.clsattn .bar,.clsattn .sum,
.clsattn tr{break-inside:avoid}.clsattn .head{break-after:avoid}}
"""
)
"""Everything under the class ``clsattn``, so that a page around it stays as it is."""
