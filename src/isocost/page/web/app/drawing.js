/** @file Drawing with Vega-Embed: colours from the style sheet, data put in as they change. */

/** @param {any} page @returns {any} */
export function lookOf(page) {
  const style = window.getComputedStyle(document.documentElement);
  /** @param {string} name */
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const dark = style.colorScheme === "dark";
  const palette = page.palette[dark ? "dark" : "light"];
  const [many, shapes] = [page.tally.groups.length, Object.keys(page.marks)];
  return {
    dark, ink: color("ink"), muted: color("muted"), line: color("strong-line"), soft: color("line"),
    paper: color("paper"), alert: color("alert"),
    measure: measureWith(window.getComputedStyle(document.body).fontFamily),
    colors: Array.from({ length: many }, (_, i) => palette[i % palette.length]),
    shapes: Array.from({ length: many }, (_, i) => shapes[i % shapes.length]), outlines: page.marks,
  };
}

/** How wide a text of the pictures is, in pixels.
 * @param {string} font */
function measureWith(font) {
  const context = document.createElement("canvas").getContext("2d");
  return (/** @type {string} */ text, /** @type {number} */ weight) => {
    if (!context) return 7.4 * text.length;
    context.font = `${weight} 12.5px ${font}`;
    return context.measureText(text).width;
  };
}

/** @param {any} look */
function configOf(look) {
  const font = window.getComputedStyle(document.body).fontFamily;
  return {
    font, background: "transparent", view: { stroke: null }, text: { color: look.ink },
    axis: {
      labelColor: look.muted, titleColor: look.ink, domainColor: look.line, tickColor: look.line,
      gridColor: look.soft, gridOpacity: 0.6, labelFontSize: 12, titleFontSize: 12.5,
      titleFontWeight: 500, titlePadding: 8, titleLimit: 420,
    },
  };
}

/** A picture that can be given other data.
 * @param {HTMLElement} element @param {any} spec @param {any} look
 * @param {{data: Record<string, any[]>, signals?: Record<string, number>, size?: any}} figure its words are placed for
 *   this width, height and padding; without them it fills its element
 * @returns {Promise<any>} the view */
export async function drawn(element, spec, look, { data, signals = {}, size }) {
  const params = (spec.params ?? []).map((/** @type {any} */ one) => ({
    ...one, value: signals[one.name] ?? one.value,
  }));
  const { view } = await /** @type {any} */ (window).vegaEmbed(
    element,
    {
      ...spec, params, datasets: data, ...size,
      autosize: size ? "none" : { type: "fit", contains: "padding" },
    },
    {
      mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
      config: configOf(look), tooltip: { theme: look.dark ? "dark" : "light" },
    },
  );
  // Pictures are told in words beside them; the marks themselves would be noise.
  element.querySelector("svg")?.setAttribute("aria-hidden", "true");
  return view;
}

/** @param {any} view @param {{data: Record<string, any[]>, signals?: Record<string, number>}} figure */
export async function refill(view, { data, signals = {} }) {
  for (const [name, value] of Object.entries(signals)) view.signal(name, value);
  for (const [name, rows] of Object.entries(data)) view.data(name, rows);
  await view.runAsync();
}

/** @param {any} look @param {number} index of the group @returns {SVGElement} */
export function markOf(look, index) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "-8 -8 16 16");
  svg.setAttribute("class", "mark");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", look.outlines[look.shapes[index]]);
  path.setAttribute("fill", look.colors[index]);
  svg.append(path);
  return svg;
}
