// The line that says what the pointer is on. Values come from the server, a block at a time, once somebody stays on one.

const MILLISECONDS_TO_STAY = 100
const MILLISECONDS_TO_ASK_AGAIN = 4000
const BLOCKS_KEPT = 16

const cards = (globalThis.hookvizCards ??= new Map())
const readouts = new WeakMap()

export default function ({ parentElement, data: [data], setTriggerValue }) {
  const line = parentElement.querySelector(".hv-readout")
  if (!readouts.has(line)) readouts.set(line, new Readout(line, data.card))
  const readout = readouts.get(line)
  readout.send = (wish) => setTriggerValue("block", wish)
  readout.take(data)
  return () => readout.leave()
}

class Readout {
  constructor(line, number) {
    this.line = line
    if (!cards.has(number)) cards.set(number, { number, open: null, turn: 0 })
    this.card = cards.get(number)
    this.blocks = new Map()
    this.at = null
  }

  leave() {
    if (this.card.readout === this) this.card.readout = null
  }

  take(data) {
    if (data.of !== this.data?.of) this.blocks.clear()
    this.data = data
    this.card.readout = this
    if (data.values !== null) {
      this.blocks.set(data.block, decoded(data.values, data.double))
      if (this.blocks.size > BLOCKS_KEPT) this.blocks.delete(this.blocks.keys().next().value)
      if (data.block === this.asked) this.asked = null
    }
    this.point(this.at)
  }

  point(at) {
    this.at = at
    clearTimeout(this.timer)
    if (at?.row !== undefined && at.of === this.data.of && !this.blocks.has(this.blockOf(at))) {
      this.timer = setTimeout(() => this.ask(this.blockOf(at)), MILLISECONDS_TO_STAY)
    }
    this.draw()
  }

  blockOf({ place, row }) {
    return Math.floor((place * this.data.height + row) / this.data.rows)
  }

  ask(block) {
    if (block === this.asked && performance.now() < this.askAgain) return
    this.asked = block
    this.askAgain = performance.now() + MILLISECONDS_TO_ASK_AGAIN
    this.send({ of: this.data.of, block })
  }

  valueAt({ of, place, row, column }) {
    const block = of === this.data.of ? this.blocks.get(this.blockOf({ place, row })) : undefined
    if (!block) return null
    return block[((place * this.data.height + row) % this.data.rows) * this.data.width + column]
  }

  draw() {
    const words = this.at ? this.words(this.at) : [this.hint()]
    this.line.classList.toggle("quiet", !this.at)
    const [first, ...rest] = words
    const bold = document.createElement(this.at ? "b" : "span")
    bold.textContent = first
    this.line.replaceChildren(bold, rest.map((word) => ` · ${word}`).join(""))
  }

  hint() {
    const { open } = this.card
    const touched = matchMedia("(hover: none)").matches
    if (open === null) return `${touched ? "Tap" : "Click"} a channel to look closer`
    return `channel ${open} is open; ${touched ? "tap it again to close" : "arrow keys walk, Escape closes"}`
  }

  words(at) {
    const words = [`channel ${at.channel}`]
    if (at.row !== undefined) {
      words.push(`row ${at.row}, column ${at.column}`)
      const value = this.valueAt(at)
      words.push(value === null ? "…" : written(value, this.data))
    }
    const bare = /^(constant|no finite)/.test(at.range)
    return [...words, bare ? at.range : `range ${at.range}`]
  }
}

function decoded(base64, double) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  return double ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer)
}

// A value with all the digits it takes to be this value and no other.

function written(value, { numbers, double }) {
  if (Number.isNaN(value)) return "NaN"
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "−Inf"
  if (numbers === "boolean") return value ? "true" : "false"
  if (numbers === "integer") {
    const text = value.toLocaleString("en-US").replace("-", "−")
    return Math.abs(value) < 2 ** 53 ? text : `about ${text}`
  }
  return (double ? String(value) : shortest(value)).replaceAll("-", "−").replace("e+", "e")
}

function shortest(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}
