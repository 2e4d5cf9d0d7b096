// The mosaic of a layer's channels. Pointing, choosing and walking happen here; the server hears of choices only.
// A card has three parts that come and go apart: this one, the line that says what the pointer is on, and the wire that
// choices go through, beside the panel, so that a choice changes the panel alone.

const cards = (globalThis.hookvizCards ??= new Map())
const mosaics = new WeakMap()

export default function ({ parentElement, data: [data], setTriggerValue }) {
  const root = parentElement.querySelector(".hv-channels")
  if (!mosaics.has(root)) mosaics.set(root, new Mosaic(root, cardOf(data.card)))
  const mosaic = mosaics.get(root)
  mosaic.send = (step) => setTriggerValue("step", step)
  mosaic.take(data)
  return () => mosaic.leave()
}

function cardOf(number) {
  if (!cards.has(number)) cards.set(number, { number, open: null, turn: 0 })
  return cards.get(number)
}

// Pages that have their tiles in the same places differ in the picture and in words alone.

function tilesOf({ columns, rows, width, height, tileWidth, tileHeight, gap, channels }) {
  return [columns, rows, width, height, tileWidth, tileHeight, gap, channels.length].join()
}

class Mosaic {
  constructor(root, card) {
    this.root = root
    this.card = card
    this.active = 0
    root.addEventListener("pointermove", (event) => this.point(this.placeOf(event)))
    root.addEventListener("pointerdown", (event) => this.point(this.placeOf(event)))
    root.addEventListener("pointerleave", () => this.point(null))
    root.addEventListener("pointercancel", () => this.point(null))
    root.addEventListener("contextmenu", (event) => event.pointerType === "touch" && event.preventDefault())
    root.addEventListener("click", (event) => this.clicked(event))
    root.addEventListener("keydown", (event) => this.pressed(event))
    root.addEventListener("focus", () => this.focused())
    root.addEventListener("blur", () => this.point(null))
  }

  leave() {
    if (this.card.mosaic === this) this.card.mosaic = null
  }

  // What the server says.

  take(data) {
    const turned = this.data && this.data.of !== data.of
    const sameTiles = this.data && tilesOf(this.data) === tilesOf(data)
    this.data = data
    this.card.mosaic = this
    this.card.turn = Math.max(this.card.turn, data.turn)
    this.root.dataset.columns = data.columns
    this.root.dataset.rows = data.rows
    this.root.style.maxWidth = `${data.widest}px`
    this.root.style.aspectRatio = `${data.width} / ${data.height}`
    this.root.classList.toggle("dense", data.dense)
    this.root.setAttribute("aria-label", data.alt)
    this.root.setAttribute("aria-colcount", data.columns)
    this.cells?.[this.pointed?.place]?.classList.remove("pointed")
    this.pointed = null
    if (!sameTiles) this.root.replaceChildren(this.picture(), ...this.rows())
    this.fill()
    if (turned) this.point(null)
    this.active = Math.min(this.active, data.channels.length - 1)
    this.arrive()
    this.draw()
  }

  picture() {
    this.image = new Image()
    this.image.draggable = false
    return this.image
  }

  rows() {
    this.cells = this.data.channels.map((_, place) => this.cell(place))
    return Array.from({ length: this.data.rows }, (_, row) => {
      const element = document.createElement("div")
      element.role = "row"
      element.append(...this.cells.slice(row * this.data.columns, (row + 1) * this.data.columns))
      return element
    })
  }

  cell(place) {
    const { columns, width, height, tileWidth, tileHeight, gap } = this.data
    const [row, column] = [Math.floor(place / columns), place % columns]
    const element = document.createElement("span")
    element.className = "cell"
    element.role = "gridcell"
    element.id = `channel-cell-${this.card.number}-${place}`
    element.style.left = `${(100 * column * (tileWidth + gap)) / width}%`
    element.style.top = `${(100 * row * (tileHeight + gap)) / height}%`
    element.style.width = `${(100 * tileWidth) / width}%`
    element.style.height = `${(100 * tileHeight) / height}%`
    const number = document.createElement("span")
    number.className = "number"
    element.append(number)
    return element
  }

  // The old picture stays until the new one is decoded.

  fill() {
    const { picture, alt, channels, ranges } = this.data
    if (this.image.src !== picture) this.image.src = picture
    this.image.alt = alt
    channels.forEach((channel, place) => {
      const cell = this.cells[place]
      cell.setAttribute("aria-label", `channel ${channel}: ${ranges[place]}`)
      if (cell.textContent !== String(channel)) cell.firstChild.textContent = channel
    })
  }

  // Where the keys walked to beyond the page, once its page is here.

  arrive() {
    const wanted = this.wanted
    if (!wanted) return
    const place = "channel" in wanted ? this.data.channels.indexOf(wanted.channel) : wanted.place - this.data.first
    if (place < 0 || place >= this.data.channels.length) return
    this.wanted = null
    this.active = place
  }

  draw() {
    if (!this.data) return
    this.cells.forEach((cell, place) => {
      cell.classList.toggle("active", place === this.active)
      cell.setAttribute("aria-selected", this.data.channels[place] === this.card.open)
    })
    this.root.setAttribute("aria-activedescendant", this.cells[this.active].id)
    if (this.isFocused() && !this.pointed) this.say({ place: this.active })
  }

  // Pointing.

  placeOf(event) {
    const { columns, width, height, tileWidth, tileHeight, gap, channels } = this.data
    const box = this.root.getBoundingClientRect()
    const x = Math.min(Math.max(((event.clientX - box.left) / box.width) * width, 0), width - 1e-6)
    const y = Math.min(Math.max(((event.clientY - box.top) / box.height) * height, 0), height - 1e-6)
    const [row, column] = [Math.floor(y / (tileHeight + gap)), Math.floor(x / (tileWidth + gap))]
    const place = row * columns + column
    if (place >= channels.length) return null
    // A gap belongs to the tile before it.
    return {
      place,
      row: Math.min(Math.floor(y - row * (tileHeight + gap)), tileHeight - 1),
      column: Math.min(Math.floor(x - column * (tileWidth + gap)), tileWidth - 1),
    }
  }

  point(at) {
    this.cells[this.pointed?.place]?.classList.remove("pointed")
    this.pointed = at
    if (at) this.cells[at.place].classList.add("pointed")
    if (at) this.say(at)
    else if (this.isFocused()) this.say({ place: this.active })
    else this.card.readout?.point(null)
  }

  say(at) {
    this.card.readout?.point({ ...at, of: this.data.of, channel: this.data.channels[at.place], range: this.data.ranges[at.place] })
  }

  isFocused() {
    return this.root.matches(":focus-visible")
  }

  focused() {
    const open = this.data.channels.indexOf(this.card.open)
    if (open >= 0) this.active = open
    this.draw()
  }

  // Choosing.

  clicked(event) {
    const at = this.placeOf(event)
    if (!at) return
    this.active = at.place
    const channel = this.data.channels[at.place]
    this.choose(channel === this.card.open ? null : channel)
  }

  choose(channel) {
    this.card.open = channel
    this.card.turn += 1
    const choice = { channel, turn: this.card.turn }
    if (this.card.wire) this.card.wire(choice)
    else this.card.waiting = choice
    this.draw()
    this.card.readout?.draw()
    this.preview(channel)
  }

  // The picture has every channel's map already, pixel for pixel: the panel need not wait for the server's.

  preview(channel) {
    const place = this.data.channels.indexOf(channel)
    const panel = document.querySelector(`.st-key-channel-${this.card.number}`)
    if (place < 0 || !panel || !this.card.map) return
    const { columns, tileWidth, tileHeight, gap } = this.data
    const canvas = document.createElement("canvas")
    canvas.width = tileWidth
    canvas.height = tileHeight
    const [left, top] = [(place % columns) * (tileWidth + gap), Math.floor(place / columns) * (tileHeight + gap)]
    const picture = this.root.querySelector("img")
    canvas.getContext("2d").drawImage(picture, left, top, tileWidth, tileHeight, 0, 0, tileWidth, tileHeight)
    panel.dataset.waiting = ""
    this.card.head?.(channel)
    this.card.map(channel, canvas.toDataURL())
  }

  step(step) {
    this.card.turn += 1
    this.wanted = step
    this.send({ ...step, turn: this.card.turn })
  }

  // Keys.

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { columns, first, channels, total } = this.data
    const at = first + this.active
    const beyond = Math.floor(this.active / columns) < this.data.rows - 1 || first + channels.length < total
    const actions = {
      ArrowRight: () => this.walk(at + 1),
      ArrowLeft: () => this.walk(at - 1),
      ArrowDown: () => beyond && this.walk(Math.min(at + columns, total - 1)),
      ArrowUp: () => this.walk(at - columns),
      Home: () => this.walk(0),
      End: () => this.walk(total - 1),
      PageDown: () => this.leap(1),
      PageUp: () => this.leap(-1),
      Enter: () => this.choose(channels[this.active]),
      Escape: this.card.open === null ? null : () => this.choose(null),
    }
    const action = actions[event.key === " " ? "Enter" : event.key]
    if (!action) return
    event.preventDefault()
    event.stopPropagation()
    action()
  }

  // While a channel is open, walking opens the next one.

  walk(place) {
    const { first, channels, total } = this.data
    const open = this.card.open !== null
    if (place < 0 || place >= total) return
    if (place < first || place >= first + channels.length) {
      // Keys come faster than pages: until one is here, they walk no further.
      if (!this.wanted) this.step({ place, open })
      return
    }
    this.active = place - first
    this.pointed = null
    if (open) this.choose(channels[this.active])
    else this.draw()
  }

  leap(by) {
    const shown = [...cards.values()].filter((card) => card.mosaic?.root.isConnected).sort((a, b) => a.number - b.number)
    const other = shown[shown.indexOf(this.card) + by]?.mosaic
    if (other) other.open(this.data.channels[this.active])
  }

  open(channel) {
    const { channels, total } = this.data
    const known = Math.min(channel, total - 1)
    const place = channels.indexOf(known)
    if (place >= 0) this.active = place
    this.root.focus()
    this.root.scrollIntoView({ block: "nearest" })
    if (place < 0) this.step({ channel: known, open: true })
    else {
      this.active = place
      this.choose(known)
    }
  }
}
