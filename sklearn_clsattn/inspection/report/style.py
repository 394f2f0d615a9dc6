"""The style sheet of model reports: light, dark and print, from a phone to a desk.

Our model is blue and solid, the baseline grey, dashed and hollow. As in explanations, blue and
solid speaks for a class, orange and dotted against it, so that nothing hangs on colour alone.
"""

from __future__ import annotations

from ..rendering.style import DARK, LIGHT

_CARD = {"light": (246, 248, 250), "dark": (30, 34, 41)}


def _variables(palette: dict[str, tuple[int, int, int]], card: tuple[int, int, int]) -> str:
    colors = {name: palette[name] for name in ("paper", "ink", "muted", "rule", "for", "against")}
    return ";".join(
        f"--r-{name}:{r},{g},{b}" for name, (r, g, b) in {**colors, "card": card}.items()
    )


STYLE = (
    f".clsreport{{{_variables(LIGHT, _CARD['light'])};color-scheme:light}}"
    "@media screen and (prefers-color-scheme:dark){"
    f".clsreport{{{_variables(DARK, _CARD['dark'])};color-scheme:dark}}}}"
    + """
.clsreport{box-sizing:border-box;background:rgb(var(--r-paper));color:rgb(var(--r-ink));
 font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 text-align:left;overflow-wrap:break-word;print-color-adjust:exact;
 -webkit-print-color-adjust:exact}
.clsreport *{box-sizing:border-box}
.clsreport .r-page{max-width:60rem;margin:0 auto;padding:3rem 1.5rem 5rem}
.clsreport h1{font-size:2.1rem;line-height:1.2;margin:0 0 .6rem;letter-spacing:-.015em}
.clsreport h2{font-size:1.4rem;line-height:1.3;margin:0 0 .5rem;letter-spacing:-.01em}
.clsreport h3{font-size:1rem;line-height:1.4;margin:2rem 0 .5rem}
.clsreport .r-part>p,.clsreport .r-lead{margin:0 0 .8rem;max-width:44rem}
.clsreport .r-part>ul:not([class]){margin:0;padding-left:1.2rem;max-width:44rem}
.clsreport .r-part>ul li{margin:0 0 .5rem}
.clsreport .r-lead{font-size:1.1rem}
.clsreport .r-soft{color:rgb(var(--r-muted))}
.clsreport .r-small{font-size:.875rem}
.clsreport a{color:rgb(var(--r-for))}
.clsreport .r-part{margin:3.5rem 0 0;padding:2rem 0 0;border-top:1px solid rgb(var(--r-rule))}
.clsreport nav{margin:1.6rem 0 0;font-size:.9rem}
.clsreport nav ul{display:flex;flex-wrap:wrap;gap:.35rem 1.2rem;list-style:none;margin:0;padding:0}
.clsreport nav a{text-decoration:none;border-bottom:1px solid rgba(var(--r-for),.4)}
.clsreport .r-tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:1rem;margin:1.8rem 0;
 padding:0;list-style:none}
.clsreport .r-tiles li{background:rgb(var(--r-card));border:1px solid rgb(var(--r-rule));
 border-radius:.6rem;padding:.9rem 1rem;font-size:.85rem;line-height:1.4;
 color:rgb(var(--r-muted))}
.clsreport .r-tiles b{display:block;font-size:1.75rem;line-height:1.25;font-weight:650;
 color:rgb(var(--r-ink));font-variant-numeric:tabular-nums;letter-spacing:-.02em}
.clsreport .r-tiles .r-ours{border-color:rgb(var(--r-for));
 box-shadow:inset 0 0 0 1px rgb(var(--r-for))}
.clsreport .r-notes{margin:.8rem 0;padding:.8rem 1rem .8rem 2rem;max-width:48rem;
 background:rgb(var(--r-card));border-left:3px solid rgb(var(--r-against));font-size:.9rem}
.clsreport .r-tab{border-collapse:collapse;width:100%;font-size:.925rem;margin:1rem 0;color:inherit;
 background:none;font-variant-numeric:tabular-nums}
.clsreport .r-tab caption{text-align:left;color:rgb(var(--r-muted));font-size:.85rem;
 caption-side:bottom;padding:.5rem 0 0}
.clsreport .r-tab tr{background:none}
.clsreport .r-tab th,.clsreport .r-tab td{padding:.45rem .6rem;text-align:right;font-weight:400;
 border:0;border-bottom:1px solid rgb(var(--r-rule));vertical-align:baseline;color:inherit;
 background:none}
.clsreport .r-tab th:first-child{text-align:left;padding-left:0}
.clsreport .r-tab tr>:last-child{padding-right:0}
.clsreport .r-tab thead th{color:rgb(var(--r-muted));font-size:.8rem;line-height:1.3;
 vertical-align:bottom;border-bottom:1px solid rgb(var(--r-muted))}
.clsreport .r-tab .r-us th,.clsreport .r-tab .r-us td{font-weight:650}
.clsreport .r-tab .r-floor th,.clsreport .r-tab .r-floor td{color:rgb(var(--r-muted))}
.clsreport .r-tab .r-best::after{content:"*";position:absolute}
.clsreport .r-slim{width:auto;min-width:min(100%,36rem)}
.clsreport .r-stack tr>:last-child{padding-right:.6rem}
.clsreport .r-facts{display:grid;grid-template-columns:max-content 1fr;gap:.4rem 1.6rem;
 margin:1rem 0;font-size:.95rem}
.clsreport .r-facts dt{color:rgb(var(--r-muted))}
.clsreport .r-facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.clsreport pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;
 font:.85rem/1.5 ui-monospace,"Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
.clsreport .r-wide{overflow-x:auto}
.clsreport .r-pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));
 gap:1.5rem 3rem;margin:1.2rem 0}
.clsreport .r-pair>div{min-width:0;overflow-x:auto}
.clsreport .r-tab bdi{overflow-wrap:anywhere}
.clsreport .r-pair h3{margin:0 0 .6rem}
.clsreport figure{margin:0;min-width:0}
.clsreport figcaption{font-size:.875rem;margin:0 0 .5rem;line-height:1.45}
.clsreport figure svg{display:block;width:100%;height:auto;max-width:28rem;overflow:visible}
.clsreport figure text{font-size:11.5px;fill:rgb(var(--r-muted));font-variant-numeric:tabular-nums}
.clsreport .r-grid{stroke:rgb(var(--r-rule));stroke-width:1}
.clsreport .r-axis{stroke:rgb(var(--r-muted));stroke-width:1}
.clsreport .r-ideal{stroke:rgb(var(--r-muted));stroke-width:1.2;stroke-dasharray:1.5 4;
 stroke-linecap:round}
.clsreport .r-line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.clsreport .r-s0.r-line,.clsreport .r-s0.r-range{stroke:rgb(var(--r-for))}
.clsreport .r-s1.r-line{stroke:rgb(var(--r-muted));stroke-dasharray:6 4}
.clsreport .r-range{stroke-width:1.2;opacity:.65}
.clsreport .r-s0.r-dot{fill:rgb(var(--r-for));stroke:rgb(var(--r-paper));stroke-width:1}
.clsreport .r-s1.r-dot{fill:rgb(var(--r-paper));stroke:rgb(var(--r-muted));stroke-width:1.8}
.clsreport .r-s0.r-bar{fill:rgb(var(--r-for))}
.clsreport .r-s1.r-bar{fill:rgb(var(--r-paper));stroke:rgb(var(--r-muted));stroke-width:1.4}
.clsreport .r-key{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;list-style:none;margin:.6rem 0 0;
 padding:0;font-size:.875rem}
.clsreport .r-key svg{display:inline-block;width:2.2rem;height:.9rem;margin-right:.5rem;
 vertical-align:-.1rem}
.clsreport .r-matrix{width:auto}
.clsreport .r-matrix td{text-align:center;padding:.5rem .4rem;line-height:1.25;min-width:6.5rem}
.clsreport .r-matrix tbody th{max-width:10rem;overflow-wrap:break-word;padding-right:1.2rem}
.clsreport .r-some tbody th,.clsreport .r-many tbody th{min-width:4.2rem}
.clsreport .r-matrix td b{display:block;font-weight:600}
.clsreport .r-matrix td small{color:inherit;font-size:.78rem}
.clsreport .r-matrix .r-rest{text-align:right;min-width:0;color:rgb(var(--r-muted))}
.clsreport .r-matrix thead th:not(:first-child){text-align:center}
.clsreport .r-matrix thead th:last-child{text-align:right}
.clsreport .r-matrix.r-some td{min-width:4.4rem}
.clsreport .r-matrix.r-many td{font-size:.75rem;padding:.3rem .2rem;min-width:2.6rem}
.clsreport .r-matrix.r-many thead .r-turned span{writing-mode:vertical-rl;transform:rotate(180deg);
 max-height:8rem}
.clsreport .r-matrix .r-right{box-shadow:inset 0 0 0 2px rgb(var(--r-for))}
.clsreport .r-bars{list-style:none;margin:0;padding:0;font-size:.925rem;line-height:1.35}
.clsreport .r-bars li{display:grid;grid-template-columns:minmax(0,9rem) 1fr 3.2rem;gap:.8rem;
 align-items:center;padding:.22rem 0}
.clsreport .r-bars bdi{overflow-wrap:anywhere;text-align:right}
.clsreport .r-fill{display:block;height:.85rem;min-width:2px;border-radius:0 .15rem .15rem 0;
 background:rgba(var(--r-for),.75);border:1px solid rgb(var(--r-for))}
.clsreport .r-first .r-fill{background:rgba(var(--r-against),.45);
 border:1px dashed rgb(var(--r-against))}
.clsreport .r-num{text-align:right;font-variant-numeric:tabular-nums;
 color:rgb(var(--r-muted));font-size:.85rem}
.clsreport details.r-fold{margin:.8rem 0;font-size:.925rem}
.clsreport .r-fold>summary,.clsreport .r-more>summary{cursor:pointer;color:rgb(var(--r-for))}
.clsreport .r-case{display:flex;flex-direction:column;margin:1.4rem 0 0;padding:1rem 1.2rem;
 border:1px solid rgb(var(--r-rule));border-radius:.6rem;min-width:0}
.clsreport .r-case header{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;align-items:baseline}
.clsreport .r-case h3{margin:0;font-size:.925rem;font-weight:500;color:rgb(var(--r-muted))}
.clsreport .r-case .r-more{order:3;margin:.5rem 0 0;font-size:.9rem}
.clsreport .r-more .r-less{display:none}
.clsreport .r-more[open] .r-less{display:inline}
.clsreport .r-more[open] .r-all{display:none}
.clsreport .r-case .clsattn{width:100%;max-width:none;margin:.7rem 0 0;padding:0;background:none}
.clsreport .r-case .doc{border:0;padding:0;margin:0}
.clsreport .r-case .head{display:none}
.clsreport .r-case .r-clip{max-height:23rem;overflow:hidden;
 -webkit-mask-image:linear-gradient(#000 calc(100% - 4rem),transparent);
 mask-image:linear-gradient(#000 calc(100% - 4rem),transparent)}
.clsreport .r-more[open]+.r-clip{max-height:none;-webkit-mask-image:none;mask-image:none}
.clsreport .r-legend{max-width:none;padding:0;margin:.8rem 0 0;background:none}
.clsreport .r-legend .legend{margin:0}
@media (max-width:40rem){
.clsreport .r-page{padding:1.6rem 1rem 3rem}
.clsreport h1{font-size:1.6rem}
.clsreport .r-lead{font-size:1.02rem}
.clsreport .r-tiles{grid-template-columns:1fr 1fr;gap:.7rem}
.clsreport .r-tiles b{font-size:1.45rem}
.clsreport .r-part{margin-top:2.4rem;padding-top:1.6rem}
.clsreport .r-facts{grid-template-columns:1fr;gap:0}
.clsreport .r-facts dd{margin:0 0 .7rem}
.clsreport .r-case{padding:.9rem .8rem}
.clsreport .r-tab th,.clsreport .r-tab td{padding:.45rem .3rem}
.clsreport .r-bars li{grid-template-columns:minmax(0,7rem) 1fr 2.8rem;gap:.6rem}
.clsreport .r-stack{display:flex;flex-direction:column}
.clsreport .r-stack tbody{display:block}
.clsreport .r-matrix td{padding:.5rem .2rem;min-width:4.5rem}
.clsreport .r-matrix.r-many td{min-width:2.6rem}
.clsreport .r-matrix .r-rest{min-width:0}
.clsreport .r-matrix.r-some td{min-width:2.6rem}
.clsreport .r-matrix tbody th{padding-right:.5rem}
.clsreport .r-matrix td b{font-size:.85rem}
.clsreport .r-matrix.r-some td b{font-size:.78rem}
.clsreport .r-matrix td small{font-size:.7rem}
.clsreport .r-stack thead{position:absolute;width:1px;height:1px;overflow:hidden;
 clip-path:inset(50%);white-space:nowrap}
.clsreport .r-stack tr{display:grid;grid-template-columns:1fr 1fr 1fr;gap:.15rem .8rem;
 padding:.8rem 0;border-bottom:1px solid rgb(var(--r-rule))}
.clsreport .r-stack th,.clsreport .r-stack td{display:block;border:0;padding:0;text-align:left}
.clsreport .r-stack tbody th{grid-column:1/-1;padding:0 0 .15rem}
.clsreport .r-stack td::before{content:attr(data-head);display:block;font-size:.75rem;
 font-weight:400;color:rgb(var(--r-muted));line-height:1.3}
.clsreport .r-stack caption{display:block;order:2}
.clsreport .r-two tr{grid-template-columns:1fr 1fr}
}
@media print{.clsreport .r-page{max-width:none;padding:0}.clsreport .r-part{break-before:auto}
.clsreport nav,.clsreport .r-more{display:none}.clsreport .r-tab tr,.clsreport .r-tiles,
.clsreport figure{break-inside:avoid}.clsreport h2,.clsreport h3,.clsreport .r-case header{
break-after:avoid}.clsreport .r-case .r-clip{max-height:none;-webkit-mask-image:none;
mask-image:none}}
"""
)
"""Everything under the class ``clsreport``, so that a notebook around it stays as it is."""
