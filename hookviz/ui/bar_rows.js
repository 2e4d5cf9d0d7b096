// Rows of bars, each a button. What a row opens is looked for until it is there.

export default function ({ parentElement, data: [data], setTriggerValue }) {
  const place = parentElement.querySelector(".bar-rows")
  const focused = [...place.querySelectorAll("button")].indexOf(place.getRootNode().activeElement)
  place.setAttribute("aria-label", data.label)
  place.classList.toggle("many", data.columns > 2)
  place.style.setProperty("--texts", data.columns)
  place.style.setProperty("--name", data.columns > 2 ? "3.2rem" : "minmax(5rem, 15rem)")
  place.style.setProperty("--text", data.columns > 2 ? "6.2rem" : "6.5rem")
  const rows = data.rows.map((row) => button(row, data))
  rows.forEach((element, number) =>
    element.addEventListener("click", () => {
      setTriggerValue("choice", data.rows[number].id)
      if (data.finds) find(data.finds, data.rows[number].id)
    })
  )
  place.replaceChildren(...(data.heads.length ? [head(data)] : []), ...rows)
  if (focused >= 0) rows[Math.min(focused, rows.length - 1)]?.focus()
}

function span(kind, text = "") {
  const element = document.createElement("span")
  element.className = kind
  element.textContent = text
  return element
}

function head(data) {
  const row = document.createElement("div")
  row.className = "head"
  row.setAttribute("aria-hidden", "true")
  row.append(...data.heads.map((text) => span("", text)))
  return row
}

function button(row, data) {
  const element = document.createElement("button")
  element.type = "button"
  element.title = row.name
  const said = row.texts.map((text, number) => [data.heads[number + 2], text].filter(Boolean).join(" "))
  element.setAttribute("aria-label", [`${data.does} ${row.name}`, ...said].join(", "))
  const track = span("track")
  const bar = span(row.share < 0 ? "below" : "")
  bar.style.width = `${100 * Math.min(Math.abs(row.share), 1)}%`
  track.append(bar)
  element.append(span("name", row.name), track, ...row.texts.map((text) => span("text", text)))
  return element
}

function find(what, layer, left = 40) {
  const titles = [...document.querySelectorAll("[class*=st-key-card-] .hv-title .layer")]
  const found = what === "card" ? titles.find((one) => one.textContent === layer) : document.querySelector(`.${what}`)
  const app = document.querySelector("[data-testid=stApp]")
  // Not at once: what is chosen may still be on its way, and push away what is there.
  if (found && app?.dataset.testScriptState === "notRunning" && left < 38) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches
    found.style.scrollMarginTop = "5rem"
    found.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" })
  } else if (left > 0) setTimeout(() => find(what, layer, left - 1), 150)
}
