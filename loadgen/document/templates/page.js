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
    const along = told.along.split("|");
    const rows = told.rows.map(([name, texts]) => [name, texts.split("|")]);
    const words = document.createElement("p");
    words.className = "readout";
    words.setAttribute("role", "status");
    words.textContent = "Point at the chart, tap it, or use the arrow keys on it, to read its values.";
    figure.append(words);
    let place = -1;
    // One drawing is for wide screens, one for narrow ones; one of both is seen.
    for (const chart of figure.querySelectorAll("svg")) {
      const cursor = chart.querySelector(".cursor");
      const left = Number(cursor.dataset.left);
      const width = cursor.dataset.right - left;
      chart.setAttribute("tabindex", "0");
      const show = (next) => {
        place = Math.max(0, Math.min(next, along.length - 1));
        cursor.setAttribute("transform", `translate(${left + width * told.at[place]})`);
        cursor.style.visibility = "visible";
        const said = rows.filter(([, texts]) => texts[place]).map(([name, texts]) => `${name} ${texts[place]}`);
        words.textContent = `${along[place]}: ${said.join(", ") || "nothing"}`;
      };
      chart.addEventListener("pointermove", (event) => {
        const box = chart.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
        const far = told.at.map((at) => Math.abs(left + width * at - x));
        show(far.indexOf(Math.min(...far)));
      });
      chart.addEventListener("keydown", (event) => {
        const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
        if (!(event.key in steps)) return;
        event.preventDefault();
        show(place + steps[event.key]);
      });
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement.blur();  // what a term means is hidden again
  });
})();
