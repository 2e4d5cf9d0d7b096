// The folding tree of a network's layers. Folding and filtering happen here alone; the server hears of choices only.

const MARGIN = 6 // rows drawn above and below those in sight, so that scrolling shows no gap
const SECONDS_OF_REFUSAL = 5

const trees = new WeakMap()

export default function ({ parentElement, data: [data], setTriggerValue }) {
  const place = parentElement.querySelector(".layer-tree")
  if (!trees.has(place)) trees.set(place, new LayerTree(place))
  const tree = trees.get(place)
  tree.send = (choice) => setTriggerValue("choice", choice)
  tree.take(data)
  return () => tree.sizes.disconnect()
}

class LayerTree {
  constructor(place) {
    const find = (selector) => place.querySelector(selector)
    this.view = find(".view")
    this.space = find(".rows")
    this.filter = find(".filter")
    this.onlyCalled = find(".called input")
    this.all = find(".all")
    this.count = find(".count")
    this.none = find(".none")
    this.refusal = find(".refusal")
    this.elements = new Map()
    this.sizes = new ResizeObserver(() => this.draw())
    this.sizes.observe(this.view)
    this.view.addEventListener("scroll", () => this.draw(), { passive: true })
    this.view.addEventListener("click", (event) => this.clicked(event))
    this.view.addEventListener("keydown", (event) => this.pressed(event))
    this.view.addEventListener("focus", () => this.draw())
    this.filter.addEventListener("input", () => this.filtered())
    this.filter.addEventListener("keydown", (event) => this.pressedInFilter(event))
    this.onlyCalled.addEventListener("change", () => this.filtered())
    this.all.addEventListener("click", () => this.foldAll())
  }

  // What the server says: the network's rows, and which layers are chosen.

  take(data) {
    if (data.network !== this.network) this.begin(data)
    this.most = data.most
    // An answer to an earlier click than the last one would undo the last one for a moment.
    if (data.turn >= this.turn) this.chosen = data.chosen
    this.countInside()
    this.draw()
  }

  begin(data) {
    this.network = data.network
    this.turn = data.turn
    this.chosen = data.chosen
    this.rows = data.rows.map((row, number) => ({ ...row, number, inside: [], level: 0 }))
    this.top = []
    for (const row of this.rows) {
      const around = row.parent === null ? null : this.rows[row.parent]
      row.level = around ? around.level + 1 : 0
      ;(around ? around.inside : this.top).push(row)
    }
    this.byName = new Map(this.rows.filter((row) => row.name !== null).map((row) => [row.name, row]))
    this.classes = new Set(this.rows.map((row) => row.class))
    this.open = new Set(data.open.map((number) => this.rows[number]))
    this.active = this.rows[0]
    this.filter.value = ""
    this.onlyCalled.checked = false
    this.view.style.setProperty("--all", this.rows.length)
    for (const element of this.elements.values()) element.remove()
    this.elements.clear()
    this.countInside()
    this.filtered()
  }

  // Which rows show.

  filtered() {
    this.matches = null
    this.folded = new Set()
    const test = matcher(this.filter.value, this.classes)
    if (test || this.onlyCalled.checked) {
      const layers = this.rows.filter((row) => row.name !== null)
      const found = layers.filter((row) => (!this.onlyCalled.checked || row.calls) && (!test || test(row)))
      this.matches = new Set(found)
      this.kept = new Set(found)
      for (let row of found) {
        while (row.parent !== null && !this.kept.has(this.rows[row.parent])) this.kept.add((row = this.rows[row.parent]))
      }
    }
    this.view.scrollTop = 0
    this.list()
    if (this.shown.length && !this.shown.includes(this.active)) this.active = this.shown[0]
    this.draw()
  }

  isOpen(row) {
    return this.matches ? !this.folded.has(row) : this.open.has(row)
  }

  list() {
    this.shown = []
    const add = (rows) => {
      const kept = this.matches ? rows.filter((row) => this.kept.has(row)) : rows
      kept.forEach((row, position) => {
        row.position = position + 1
        row.siblings = kept.length
        row.folds = row.inside.some((one) => !this.matches || this.kept.has(one))
        this.shown.push(row)
        if (row.folds && this.isOpen(row)) add(row.inside)
      })
    }
    add(this.top)
    const total = this.byName.size
    this.count.textContent = this.matches ? `${this.matches.size} of ${total}` : `${total} layers`
    this.none.hidden = this.shown.length > 0
    this.all.disabled = this.matches !== null
    this.all.textContent = this.open.size ? "Fold all" : "Open all"
  }

  foldAll() {
    this.open = new Set(this.open.size ? [] : this.rows.filter((row) => row.inside.length))
    while (!this.open.size && this.active.parent !== null) this.active = this.rows[this.active.parent]
    this.list()
    this.draw()
  }

  fold(row, open) {
    if (!row.folds || this.isOpen(row) === open) return
    const [set, member] = this.matches ? [this.folded, !open] : [this.open, open]
    if (member) set.add(row)
    else set.delete(row)
    this.list()
    this.draw()
  }

  // Choosing.

  choose(row) {
    if (row.name === null) return
    const chosen = this.chosen.includes(row.name)
    if (!chosen && this.chosen.length >= this.most) {
      this.refuse(`At most ${this.most} layers show at once: take one away first.`)
      return
    }
    this.refuse("")
    this.chosen = chosen ? this.chosen.filter((name) => name !== row.name) : [...this.chosen, row.name]
    this.turn += 1
    this.countInside()
    this.draw()
    this.send({ layers: this.chosen, turn: this.turn })
  }

  refuse(sentence) {
    clearTimeout(this.timer)
    this.refusal.textContent = sentence
    if (sentence) this.timer = setTimeout(() => this.refuse(""), SECONDS_OF_REFUSAL * 1000)
  }

  countInside() {
    this.chosenInside = new Map()
    for (const name of this.chosen) {
      let row = this.byName.get(name)
      while (row && row.parent !== null) {
        row = this.rows[row.parent]
        this.chosenInside.set(row, (this.chosenInside.get(row) ?? 0) + 1)
      }
    }
  }

  // Drawing: only rows in sight have elements, so that a network of any depth costs the same.

  draw() {
    if (!this.shown) return
    const height = parseFloat(getComputedStyle(this.view).getPropertyValue("--row"))
    const first = Math.max(0, Math.floor(this.view.scrollTop / height) - MARGIN)
    const last = Math.ceil((this.view.scrollTop + this.view.clientHeight) / height) + MARGIN
    this.height = height
    this.space.style.height = `${this.shown.length * height}px`
    const inSight = new Set(this.shown.slice(first, last))
    for (const [row, element] of this.elements) {
      if (!inSight.has(row)) {
        element.remove()
        this.elements.delete(row)
      }
    }
    let place = first
    for (const row of inSight) this.drawRow(row, place++ * height)
    this.view.setAttribute("aria-activedescendant", inSight.has(this.active) ? idOf(this.active) : "")
  }

  drawRow(row, top) {
    let element = this.elements.get(row)
    if (!element) {
      element = newElement(row)
      this.elements.set(row, element)
      this.space.append(element)
    }
    const inside = this.isOpen(row) ? 0 : (this.chosenInside.get(row) ?? 0)
    element.style.transform = `translateY(${top}px)`
    element.classList.toggle("active", row === this.active)
    element.classList.toggle("aside", this.matches !== null && !this.matches.has(row))
    set(element, "aria-posinset", row.position)
    set(element, "aria-setsize", row.siblings)
    set(element, "aria-expanded", row.folds ? this.isOpen(row) : null)
    set(element, "aria-checked", row.name === null ? null : this.chosen.includes(row.name))
    set(element, "aria-label", inside ? `${row.label}, ${inside} chosen inside` : row.label)
    const mark = element.querySelector(".inside")
    const text = inside ? `${inside} chosen` : ""
    if (mark.textContent !== text) mark.textContent = text
  }

  // Mouse and keys.

  clicked(event) {
    const element = event.target.closest(".row")
    if (!element) return
    this.active = this.rows[element.dataset.row]
    const box = event.target.closest(".box")
    if (this.active.folds && (!box || this.active.name === null)) this.fold(this.active, !this.isOpen(this.active))
    else this.choose(this.active)
    this.draw()
  }

  pressed(event) {
    const row = this.active
    const at = this.shown.indexOf(row)
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.height) - 1)
    const actions = {
      ArrowDown: () => this.go(at + 1),
      ArrowUp: () => this.go(at - 1),
      PageDown: () => this.go(at + page),
      PageUp: () => this.go(at - page),
      Home: () => this.go(0),
      End: () => this.go(this.shown.length - 1),
      ArrowRight: () => (row.folds && this.isOpen(row) ? this.go(at + 1) : this.fold(row, true)),
      ArrowLeft: () => {
        if (row.folds && this.isOpen(row)) this.fold(row, false)
        else if (row.parent !== null) this.go(this.shown.indexOf(this.rows[row.parent]))
      },
      Enter: () => (row.name === null ? this.fold(row, !this.isOpen(row)) : this.choose(row)),
    }
    const action = actions[event.key === " " ? "Enter" : event.key]
    if (!action || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    action()
  }

  pressedInFilter(event) {
    event.stopPropagation() // the page has shortcuts of its own
    if (event.key === "ArrowDown" && this.shown.length) {
      event.preventDefault()
      this.view.focus()
    } else if (event.key === "Escape" && this.filter.value) {
      this.filter.value = ""
      this.filtered()
    }
  }

  go(place) {
    const at = Math.min(Math.max(place, 0), this.shown.length - 1)
    this.active = this.shown[at]
    const [top, bottom] = [at * this.height, (at + 1) * this.height]
    if (top < this.view.scrollTop) this.view.scrollTop = top
    else if (bottom > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = bottom - this.view.clientHeight
    this.draw()
  }
}

const idOf = (row) => `layer-row-${row.number}`

function set(element, name, value) {
  if (value === null) element.removeAttribute(name)
  else if (element.getAttribute(name) !== `${value}`) element.setAttribute(name, value)
}

function newElement(row) {
  const element = document.createElement("div")
  element.className = ["row", row.kind, row.calls === 0 ? "idle" : ""].join(" ").trim()
  element.id = idOf(row)
  element.role = "treeitem"
  element.title = row.name || row.title
  element.dataset.row = row.number
  element.setAttribute("aria-level", row.level + 1)
  element.style.setProperty("--level", row.level)
  const name = cell("name", "")
  name.append(cell("fold", ""), cell("title", row.title), cell("inside", ""))
  element.append(cell("box", ""), name)
  for (const column of ["type", "output", "parameters"]) element.append(cell(column, row[column]))
  element.append(cell("calls", row.calls ? `${row.calls}` : ""))
  return element
}

function cell(column, text) {
  const element = document.createElement("span")
  element.className = column
  element.textContent = text
  return element
}

// A filter is words that must all match: part of a name or type, a glob of the whole name, or type:… for types alone,
// which means exactly that type once it is one: type:ReLU leaves out ReLU6.

function matcher(text, classes) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((word) => wordMatcher(word, classes))
  return tests.length ? (row) => tests.every((test) => test(row)) : null
}

function wordMatcher(word, classes) {
  const ofType = /^type:/i.test(word)
  const wanted = ofType ? word.slice(5) : word
  if (ofType && classes.has(wanted)) return (row) => row.class === wanted
  if (/[*?[]/.test(wanted)) {
    const glob = globbed(wanted)
    return (row) => glob.test(ofType ? row.class : row.name)
  }
  const part = wanted.toLowerCase()
  return (row) => row.type.toLowerCase().includes(part) || (!ofType && row.name.toLowerCase().includes(part))
}

function globbed(glob) {
  const pattern = glob.replace(/\[(!?)(\]?[^\]]*)\]|[^]/g, (one, not, set) => {
    if (set !== undefined) return `[${not ? "^" : ""}${set.replace(/[\\\]^]/g, "\\$&")}]`
    return { "*": ".*", "?": "." }[one] ?? one.replace(/[.+^${}()|[\]\\]/g, "\\$&")
  })
  return new RegExp(`^(?:${pattern})$`, "is")
}
