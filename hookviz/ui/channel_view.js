// The head of the open channel. The mosaic shows another channel's number here at once; the server follows.

const cards = (globalThis.hookvizCards ??= new Map())

export default function ({ parentElement, data: [data] }) {
  if (!cards.has(data.card)) cards.set(data.card, { number: data.card, open: null, turn: 0 })
  const card = cards.get(data.card)
  const place = parentElement.querySelector(".hv-channel")
  const show = (channel) => showHead(place, card, channel)
  card.head = show
  if (data.turn >= card.turn) {
    show(data.channel)
    place.closest(`.st-key-channel-${card.number}`)?.removeAttribute("data-waiting")
  }
  return () => {
    if (card.head === show) card.head = null
  }
}

function showHead(place, card, channel) {
  if (!place.firstChild) {
    const [head, heading, button] = ["div", "h3", "button"].map((name) => document.createElement(name))
    head.className = "head"
    button.type = "button"
    button.textContent = "Close"
    button.addEventListener("click", () => close(card))
    head.append(heading, button)
    head.addEventListener("keydown", (event) => event.key === "Escape" && close(card))
    place.append(head)
  }
  place.querySelector("h3").textContent = `channel ${channel}`
}

// The button goes with the panel, and the keys would be nowhere.

function close(card) {
  card.mosaic?.choose(null)
  card.mosaic?.root.focus({ preventScroll: true })
}
