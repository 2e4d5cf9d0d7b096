// A picture with a pixel for each position, of which one can be chosen: by pointer, by touch, by arrow keys. The mark
// moves at once; what the server has to say of the position comes a moment later.

const cards = (globalThis.hookvizCards ??= new Map())
const pictures = new WeakMap()

export default function ({ parentElement, data: [data], setTriggerValue }) {
  const root = parentElement.querySelector(".hv-places")
  if (!pictures.has(root)) pictures.set(root, new PositionPicture(root))
  const picture = pictures.get(root)
  picture.send = (choice) => setTriggerValue("position", choice)
  picture.take(data)
  return () => picture.leave()
}

function cardOf(number) {
  if (!cards.has(number)) cards.set(number, { number, open: null, turn: 0 })
  return cards.get(number)
}

class PositionPicture {
  constructor(root) {
    this.root = root
    this.turn = 0
    this.show = (channel, source) => this.preview(channel, source)
    const figure = document.createElement("figure")
    this.frame = document.createElement("div")
    this.caption = document.createElement("figcaption")
    this.caption.setAttribute("aria-live", "polite")
    this.frame.addEventListener("click", (event) => this.clicked(event))
    this.frame.addEventListener("keydown", (event) => this.pressed(event))
    figure.append(this.frame, this.caption)
    root.append(figure)
  }

  leave() {
    if (this.card?.map === this.show) this.card.map = null
  }

  // What the server says. An answer to an earlier choice than the last one would undo the last one for a moment.

  take(data) {
    this.card = cardOf(data.card)
    if (data.previews) this.card.map = this.show
    if (data.of !== null && data.of < this.card.turn) return
    this.turn = Math.max(this.turn, data.turn)
    const late = data.turn < this.turn
    const { chosen, words } = late ? this.data : data
    this.data = { ...data, chosen, words }
    this.put(data.picture, data.alt)
    this.root.style.maxWidth = `${data.widest}px`
    this.draw()
    if (data.previews) this.root.closest(`.st-key-channel-${data.card}`)?.removeAttribute("data-waiting")
  }

  // The mosaic has every channel's map already, pixel for pixel, and shows it here at once.

  preview(channel, source) {
    this.put(source, `Channel ${channel}`)
    this.frame.querySelectorAll(".mark.maximum").forEach((mark) => mark.remove())
    this.caption.dataset.waiting = ""
    this.card.photo?.()
  }

  // Decoded before it takes the place of another, so that none flashes.

  put(source, alt) {
    const picture = new Image()
    picture.src = source
    picture.alt = alt
    picture.draggable = false
    this.newest = picture
    const put = () => {
      if (this.newest !== picture) return
      this.frame.querySelector("img")?.remove()
      this.frame.prepend(picture)
    }
    picture.decode().then(put, put)
  }

  draw() {
    const { height, width, chosen, maximum, words, label, dense } = this.data
    const alone = height * width === 1
    this.frame.className = ["picture", dense ? "dense" : "", alone ? "alone" : ""].join(" ")
    this.frame.style.aspectRatio = `${width} / ${height}`
    if (alone) this.frame.removeAttribute("tabindex")
    else this.frame.tabIndex = 0
    this.frame.setAttribute("role", alone ? "img" : "application")
    this.frame.setAttribute("aria-label", alone ? label : `${label}; arrow keys choose a position`)
    this.frame.querySelectorAll(".mark").forEach((mark) => mark.remove())
    if (!alone) {
      if (maximum) this.mark(maximum, "maximum")
      if (chosen) this.mark(chosen, "chosen")
    }
    delete this.caption.dataset.waiting
    this.caption.className = words.length > 1 ? "hv-caption" : "hv-caption short"
    this.caption.hidden = !words.length
    this.caption.replaceChildren(
      ...words.map((text) => Object.assign(document.createElement("span"), { textContent: text })),
    )
  }

  mark([row, column], kind) {
    const { height, width } = this.data
    const mark = document.createElement("span")
    mark.className = `mark ${kind}`
    mark.style.left = `${(100 * (column + 0.5)) / width}%`
    mark.style.top = `${(100 * (row + 0.5)) / height}%`
    mark.style.width = `${100 / width}%`
    mark.style.height = `${100 / height}%`
    this.frame.append(mark)
  }

  // Choosing.

  clicked(event) {
    const { height, width, chosen } = this.data
    if (height * width === 1) return
    const box = this.frame.getBoundingClientRect()
    const at = (share, count) => Math.min(Math.max(Math.floor(share * count), 0), count - 1)
    const row = at((event.clientY - box.top) / box.height, height)
    const column = at((event.clientX - box.left) / box.width, width)
    const again = chosen && chosen[0] === row && chosen[1] === column
    this.choose(again ? null : [row, column])
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { height, width, chosen, maximum } = this.data
    if (height * width === 1) return
    const [row, column] = chosen ?? maximum ?? [0, 0]
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
    const step = steps[event.key]
    if (!step && event.key !== "Home") return
    event.preventDefault()
    event.stopPropagation()
    if (!step) return this.choose(null)
    const [below, right] = [row + step[0], column + step[1]]
    if (below < 0 || right < 0 || below >= height || right >= width) return
    this.choose([below, right])
  }

  choose(position) {
    this.turn += 1
    this.data.chosen = position
    const waiting = position ? [`row ${position[0]}, column ${position[1]}`, "…"] : this.data.words
    this.data.words = waiting.slice(0, this.data.words.length)
    this.draw()
    this.card.photo?.()
    this.send({ position, turn: this.turn })
  }
}
