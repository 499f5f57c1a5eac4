() => {
  // What a reader with weak eyes or a screen reader would stumble over: text of little contrast, cells without a head,
  // tables, figures, pictures and sounds without a name, headings that skip a level, ids that occur twice.
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parsed = (text) => {
    const found = text.match(/rgba?\(([^)]+)\)/);
    if (!found) return null;
    const [r, g, b, a] = found[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a === undefined ? 1 : a];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat([1]);
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = parsed(getComputedStyle(at).backgroundColor);
      if (color && color[3] > 0) layers.push(color);
      if (color && color[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const opacity = (element) => {
    let all = 1;
    for (let at = element; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
  };
  const found = [];
  let looked = 0;
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("script, style, noscript") || ![...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const color = parsed(element instanceof SVGElement ? style.fill : style.color);
    if (!box.width || !box.height || !color) continue;
    color[3] *= opacity(element);
    const below = ground(element);
    const [a, b] = [luminance(over(color, below)), luminance(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    looked += 1;
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${element.tagName} ${element.textContent.trim().slice(0, 30)}`);
  }
  const missing = (selector, isMissing, what) => document.querySelectorAll(selector).forEach((e) => { if (isMissing(e)) found.push(`${what}: ${e.outerHTML.slice(0, 80)}`); });
  missing("th", (e) => !e.hasAttribute("scope"), "no scope");
  missing("th", (e) => !e.textContent.trim(), "empty head");
  missing("table", (e) => !e.caption || !(e.caption.textContent.trim() || e.closest("[aria-label]")), "no caption");
  missing("figure", (e) => !e.hasAttribute("aria-labelledby"), "no name");
  missing("img, [role=img], audio, [role=region], nav", (e) => !(e.alt || e.getAttribute("aria-label")), "no name");
  missing(".scroll", (e) => e.tabIndex !== 0, "cannot be scrolled by keys");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((e) => Number(e.tagName[1]));
  levels.forEach((level, i) => { if (level > (levels[i - 1] || 0) + 1) found.push(`heading ${i} skips from ${levels[i - 1]} to ${level}`); });
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => found.push(`id twice: ${id}`));
  return { looked, found };
}
