// The open channel over the photograph. Where the receptive field is still being found, this asks for it until it is.

const MILLISECONDS_TO_ASK = 40
const MILLISECONDS_TO_ASK_AGAIN = 700

const cards = (globalThis.hookvizCards ??= new Map())
const times = new WeakMap()
const timers = new WeakMap()

export default function ({ parentElement, data: [data], setTriggerValue }) {
  if (!cards.has(data.card)) cards.set(data.card, { number: data.card, open: null, turn: 0 })
  const card = cards.get(data.card)
  const root = parentElement.querySelector(".hv-photo")
  const wait = () => root.classList.add("waiting")
  const ask = () => {
    times.set(root, (times.get(root) ?? 0) + 1)
    setTriggerValue("ask", times.get(root))
  }
  card.photo = wait
  put(root, data)
  root.querySelector("figcaption").replaceChildren(...caption(data, ask))
  clearTimeout(timers.get(root))
  if (data.pending) keepAsking(root, ask, MILLISECONDS_TO_ASK)
  return () => {
    if (card.photo === wait) card.photo = null
  }
}

// Again and again until other data come: what is asked while the page is still being drawn may get no answer.

function keepAsking(root, ask, milliseconds) {
  const again = () => {
    if (!root.isConnected) return
    ask()
    keepAsking(root, ask, MILLISECONDS_TO_ASK_AGAIN)
  }
  timers.set(root, setTimeout(again, milliseconds))
}

// Decoded before it takes the place of another, so that none flashes.

function put(root, { picture: source, alt, widest }) {
  if (!root.firstChild) {
    const figure = document.createElement("figure")
    const caption = document.createElement("figcaption")
    caption.className = "hv-caption"
    caption.setAttribute("aria-live", "polite")
    figure.append(caption)
    root.append(figure)
  }
  root.style.maxWidth = `${widest}px`
  const picture = new Image()
  picture.src = source
  picture.alt = alt
  root.newest = picture
  const show = () => {
    if (root.newest !== picture) return
    root.querySelector("img")?.remove()
    root.firstChild.prepend(picture)
    root.classList.remove("waiting")
  }
  picture.decode().then(show, show)
}

function caption({ words, note, offer }, ask) {
  const line = document.createElement("span")
  if (offer) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = offer
    button.addEventListener("click", ask)
    line.append(button)
  } else line.textContent = words
  if (!note) return [line]
  return [line, Object.assign(document.createElement("span"), { textContent: note })]
}
