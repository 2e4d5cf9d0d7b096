// The head and the map of the open channel. The mosaic has the map already, pixel for pixel, and shows it here at
// once; what the server sends a moment later takes its place.

const cards = (globalThis.hookvizCards ??= new Map())

export default function ({ parentElement, data }) {
  if (!cards.has(data.card)) cards.set(data.card, { number: data.card, open: null, turn: 0 })
  const card = cards.get(data.card)
  const place = parentElement.querySelector(".hv-channel")
  const show = data.part === "head" ? (channel) => showHead(place, card, channel) : (channel, picture) => showMap(place, data, channel, picture)
  card[data.part] = show
  if (data.turn >= card.turn) {
    show(data.channel, data.picture)
    place.closest(`.st-key-channel-${card.number}`)?.removeAttribute("data-waiting")
  }
  return () => {
    if (card[data.part] === show) card[data.part] = null
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

// Decoded before it takes the place of another, so that none flashes.

function showMap(place, { layer, dense, ratio, widest }, channel, source) {
  const picture = new Image()
  picture.src = source
  picture.alt = `Channel ${channel} of ${layer}`
  picture.style.aspectRatio = ratio
  place.newest = picture
  const put = () => {
    if (place.newest !== picture) return
    const figure = document.createElement("figure")
    figure.classList.toggle("dense", dense)
    figure.style.maxWidth = `${widest}px`
    figure.append(picture)
    place.replaceChildren(figure)
  }
  picture.decode().then(put, put)
}
