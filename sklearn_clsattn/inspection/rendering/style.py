"""The style sheet of explanations: light, dark and print, and never colour alone.

What speaks for the class shown is blue and underlined solid, what speaks against it orange and
underlined dotted. Both colours are told apart with all common kinds of colour blindness, and text
keeps a contrast of 4.5 to 1 on every shade.
"""

from __future__ import annotations

from .pieces import N_LANES

N_SHADES = 5
"""Levels of shading by contribution."""

N_OUTLINES = 2
"""Levels of outlining by attention."""

# Opacity of each shade, on white and on black.
LIGHT = {
    "paper": (255, 255, 255),
    "ink": (24, 28, 34),
    "muted": (87, 95, 107),
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


# Room for one more line below a word, in em.
_LANE = 0.22


def _variables(palette: dict[str, tuple[int, int, int]], shades: tuple[float, ...]) -> str:
    colors = [f"--{name}:{r},{g},{b}" for name, (r, g, b) in palette.items()]
    return ";".join(colors + [f"--s{at}:{alpha}" for at, alpha in enumerate(shades, 1)])


def _shades() -> str:
    return "".join(
        f".clsattn .{letter}{at}{{background:rgba(var(--{side}),var(--s{at}))}}"
        for letter, side in (("p", "for"), ("n", "against"))
        for at in range(1, N_SHADES + 1)
    )


def _background(side: str, shade: int) -> str:
    """Return a shade that covers what is below it."""
    color = f"rgba(var(--{side}),var(--s{shade}))"
    return f"background:linear-gradient({color},{color}),rgb(var(--paper))"


def _lanes() -> str:
    """Return lines below each other; a line of text is as high as those in it need."""
    return "".join(
        f".clsattn .l{lane}{{padding-bottom:{_LANE * (lane + 1):.2f}em;"
        f"line-height:{2.1 + 2 * _LANE * lane:.2f}}}"
        for lane in range(N_LANES)
    )


STYLE = (
    # A notebook may be light where the system is dark: paper and ink always come together.
    f".clsattn{{{_variables(LIGHT, LIGHT_SHADES)};color-scheme:light}}"
    "@media screen and (prefers-color-scheme:dark){"
    f".clsattn{{{_variables(DARK, DARK_SHADES)};color-scheme:dark}}}}"
    + """
.clsattn{box-sizing:border-box;max-width:60rem;margin:0 auto;padding:1rem;text-align:left;
 direction:ltr;overflow-wrap:anywhere;background:rgb(var(--paper));color:rgb(var(--ink));
 font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 print-color-adjust:exact;-webkit-print-color-adjust:exact}
.clsattn *{box-sizing:border-box}
.clsattn h1{font-size:1.15rem;font-weight:600;margin:.2rem 0 .6rem}
.clsattn .soft{color:rgb(var(--muted))}
.clsattn .small{font-size:.85rem;margin:.6rem 0 0}
.clsattn .legend{display:flex;flex-wrap:wrap;gap:.15rem 1.2rem;margin:0 0 .9rem;
 font-size:.8125rem;color:rgb(var(--muted));line-height:1.7}
.clsattn .legend .g{line-height:inherit}
.clsattn .ramp{white-space:nowrap}
.clsattn .ramp i{display:inline-block;width:.8rem;height:.8rem;vertical-align:-.1rem}
.clsattn .ramp .p2,.clsattn .ramp .p3,.clsattn .ramp .p4,.clsattn .ramp .p5{
 border-bottom:2px solid rgb(var(--for))}
.clsattn .ramp .n2,.clsattn .ramp .n3,.clsattn .ramp .n4,.clsattn .ramp .n5{
 border-bottom:2px dotted rgb(var(--against))}

.clsattn .doc{border-top:1px solid rgb(var(--rule));padding:1.1rem 0 1.6rem;margin:0}
.clsattn .head{display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline;margin:0 0 .6rem}
.clsattn .head>*,.clsattn .sum>*,.clsattn .legend>*,.clsattn .classes bdi{min-width:0}
.clsattn .no{color:rgb(var(--muted));font-variant-numeric:tabular-nums}
.clsattn .said b{font-size:1.15rem}
.clsattn .wrong{border:2px solid currentColor;border-radius:.3rem;padding:0 .4rem;font-weight:600}
.clsattn .classes{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.5rem,1fr));
 gap:.3rem .8rem;list-style:none;margin:0 0 .8rem;padding:0;font-size:.875rem;
 font-variant-numeric:tabular-nums}
.clsattn .classes li{margin:0;min-width:0}
.clsattn .classes li>span:first-child{display:flex;justify-content:space-between;gap:.5rem}
.clsattn .classes span span{white-space:nowrap}
.clsattn .shown{font-weight:600}
.clsattn .meter{display:block;height:.4rem;border:1px solid rgb(var(--rule));border-radius:.2rem;
 overflow:hidden}
.clsattn .meter i{display:block;height:100%;background:rgb(var(--muted))}
.clsattn .shown .meter i{background:rgb(var(--for))}

.clsattn .bar{position:relative;margin:0;padding:.2rem 0 0}
/* Names in the bar start a line of their own, which is hidden, unless they fit as a whole. */
.clsattn .row{position:relative;display:block;height:1.35rem;margin:0 0 .15rem}
.clsattn .row i{position:absolute;top:0;bottom:0;font-style:normal;font-size:.78rem;
 line-height:1.2rem;overflow:hidden;display:flex;flex-wrap:wrap;
 border:1px solid rgb(var(--for));color:rgb(var(--ink))}
.clsattn .row.minus i{border:1px dashed rgb(var(--against))}
.clsattn .row i::before,.clsattn .axis span::before{content:"";width:1px;height:100%}
.clsattn .row bdi{padding:0 .25rem;white-space:nowrap}
.clsattn .mark{position:absolute;top:.1rem;width:0}
.clsattn .mark.zero{bottom:0;border-left:1px dotted rgb(var(--muted))}
.clsattn .mark.start{height:1.55rem;border-left:2px solid rgb(var(--muted));margin-left:-1px}
.clsattn .mark.end{height:1.55rem;border-left:4px solid rgb(var(--ink));margin-left:-2px}
.clsattn .mark.second{top:1.6rem}
.clsattn .axis{display:block;position:relative;height:1rem;font-size:.78rem;line-height:1rem;
 color:rgb(var(--muted))}
.clsattn .axis span{position:absolute;top:0;bottom:0;padding:0 .35rem;white-space:nowrap;
 overflow:hidden;display:flex;flex-wrap:wrap}
.clsattn .axis i{font-style:normal}
.clsattn .left{left:0;justify-content:flex-end}
.clsattn .right{right:0}
.clsattn .sum{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin:.15rem 0 .8rem;font-size:.9rem;
 font-variant-numeric:tabular-nums}
.clsattn .sum b{white-space:nowrap}
.clsattn .key{display:inline-block;height:.95rem;vertical-align:-.12rem;margin-right:.35rem}
.clsattn .key.end{border-left:4px solid rgb(var(--ink))}
.clsattn .key.start{border-left:2px solid rgb(var(--muted))}

.clsattn .text{white-space:pre-wrap;line-height:1.8;margin:.5rem 0;
 color:rgb(var(--muted));text-align:start;unicode-bidi:isolate}
.clsattn .text:empty{display:none}
.clsattn .joined{white-space:normal}
.clsattn .joined .t{margin-right:.35rem}
.clsattn h4{margin:.6rem 0 0;font-size:.85rem;color:rgb(var(--muted));font-weight:600}
.clsattn summary{font-size:.9rem;cursor:pointer;margin:.3rem 0}
.clsattn .t{color:rgb(var(--ink));border-radius:.2rem;text-decoration-thickness:2px;
 text-underline-offset:.18em;text-decoration-skip-ink:none}
.clsattn .p2,.clsattn .p3,.clsattn .p4,.clsattn .p5{text-decoration-line:underline;
 text-decoration-style:solid;text-decoration-color:rgb(var(--for))}
.clsattn .n2,.clsattn .n3,.clsattn .n4,.clsattn .n5{text-decoration-line:underline;
 text-decoration-style:dotted;text-decoration-color:rgb(var(--against))}
"""
    + _shades()
    + """
.clsattn .a1,.clsattn .a2{padding:0 .14em;margin:0 -.04em;box-decoration-break:clone;
 -webkit-box-decoration-break:clone}
.clsattn .a1{outline:1px solid rgba(var(--ink),.38);outline-offset:-1px}
.clsattn .a2{outline:2px solid rgba(var(--ink),.75);outline-offset:-2px}
.clsattn .g{border-bottom:2px solid rgb(var(--for))}
.clsattn .g.minus{border-bottom:2px dotted rgb(var(--against))}
"""
    + _lanes()
    + f"""
.clsattn .row i{{{_background("for", 3)}}}
.clsattn .row i.rest{{{_background("for", 1)}}}
.clsattn .row.minus i{{{_background("against", 3)}}}
.clsattn .row.minus i.rest{{{_background("against", 1)}}}
"""
    + """
.clsattn .lists{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr));
 gap:1rem 2rem;margin:.8rem 0 .4rem}
.clsattn table{border-collapse:collapse;width:100%;font-size:.875rem;margin:0;align-self:start;
 font-variant-numeric:tabular-nums;color:inherit;background:none;table-layout:fixed}
.clsattn tr{background:none!important}
.clsattn caption{text-align:left;font-weight:600;padding:0 0 .2rem;color:inherit;
 caption-side:top}
.clsattn th,.clsattn td{padding:.14rem .3rem;text-align:right;border:0;background:none;
 border-bottom:1px solid rgb(var(--rule));font-weight:400;white-space:nowrap;color:inherit}
.clsattn thead th{color:rgb(var(--muted));font-size:.78rem;vertical-align:bottom;
 white-space:normal;width:5.6em}
.clsattn thead th:first-child{text-align:left;width:auto}
.clsattn thead th:nth-child(2){width:4.6em}
.clsattn thead th:nth-child(4){width:4em}
.clsattn tbody th{position:relative;text-align:left;white-space:normal}
.clsattn tbody bdi{position:relative}
.clsattn .of{font-size:.72rem;color:rgb(var(--muted))}
.clsattn .size{position:absolute;left:0;top:2px;bottom:2px;
 background:rgba(var(--for),var(--s2));border-left:2px solid rgb(var(--for))}
.clsattn .minus .size{background:rgba(var(--against),var(--s2));
 border-left:2px dotted rgb(var(--against))}
@media (min-width:60rem){.clsattn thead th:nth-child(5){width:8.8em}}
@media (max-width:22rem){
.clsattn table,.clsattn caption,.clsattn thead,.clsattn tbody{display:block}
.clsattn table tr{display:flex;flex-wrap:wrap}
.clsattn table tr th:first-child{flex:1 0 100%;border:0}
.clsattn table td,.clsattn thead th:not(:first-child){flex:1 1 0;width:auto}}
@media print{.clsattn{max-width:none;padding:0}.clsattn .head,.clsattn .bar,.clsattn .sum,
.clsattn .classes,.clsattn tr{break-inside:avoid}.clsattn .head,.clsattn .bar,.clsattn caption{
break-after:avoid}}
"""
)
"""Everything under the class ``clsattn``, so that a page around it stays as it is."""

PAGE_STYLE = (
    f"body{{margin:0;background:rgb{LIGHT['paper']}}}"
    "@media screen and (prefers-color-scheme:dark){"
    f"body{{background:rgb{DARK['paper']}}}}}"
)
"""The paper around the element, on a page of its own."""
