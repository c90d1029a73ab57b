"use strict";
(() => {
  // Lines that may be taken: by the clipboard, else by an older way, else selected for the reader to take.
  const taken = async (lines) => {
    try {
      await navigator.clipboard.writeText(lines.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(lines);
      return document.execCommand("copy");
    }
  };
  for (const lines of document.querySelectorAll("pre.taken")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      button.textContent = (await taken(lines)) ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(() => { button.textContent = "Copy"; }, 3000);
    });
    lines.before(button);
  }

  // What stands at a place of a chart, told where one points, or goes by the arrow keys.
  for (const figure of document.querySelectorAll("figure.drawing")) {
    const data = figure.querySelector("script");
    if (!data) continue;
    const told = JSON.parse(data.textContent);
    const chart = figure.querySelector("svg");
    const words = document.createElement("p");
    words.className = "readout";
    words.setAttribute("role", "status");
    words.textContent = "Point at the chart, tap it, or use the arrow keys on it, to read its values.";
    figure.append(words);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("y1", told.from);
    cursor.setAttribute("y2", told.to);
    chart.append(cursor);
    chart.setAttribute("tabindex", "0");
    let place = -1;
    const show = (next) => {
      place = Math.max(0, Math.min(next, told.at.length - 1));
      cursor.setAttribute("x1", told.at[place]);
      cursor.setAttribute("x2", told.at[place]);
      cursor.style.visibility = "visible";
      const rows = told.rows.filter(([, texts]) => texts[place]).map(([name, texts]) => `${name} ${texts[place]}`);
      words.textContent = `${told.along[place]}: ${rows.join(", ") || "nothing"}`;
    };
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const far = told.at.map((at) => Math.abs(at - x));
      show(far.indexOf(Math.min(...far)));
    });
    chart.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
      if (!(event.key in steps)) return;
      event.preventDefault();
      show(place + steps[event.key]);
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement.blur();  // what a term means is hidden again
  });
})();
