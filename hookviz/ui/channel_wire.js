// What choices of a card go through: beside its panel, so that a choice runs the panel alone.

const cards = (globalThis.hookvizCards ??= new Map())

export default function ({ data: [data], setTriggerValue }) {
  if (!cards.has(data.card)) cards.set(data.card, { number: data.card, open: null, turn: 0 })
  const card = cards.get(data.card)
  const wire = (choice) => {
    card.show = choice.turn
    setTriggerValue("choice", choice)
  }
  card.wire = wire
  // An answer to an earlier choice than the last one would undo the last one for a moment.
  if (data.turn >= card.turn) {
    card.open = data.channel
    card.turn = data.turn
    card.mosaic?.draw()
    card.readout?.draw()
    if (card.show === data.turn && data.channel !== null) bringIntoView(card.number)
  }
  if (card.waiting) {
    wire(card.waiting)
    card.waiting = null
  }
  return () => {
    if (card.wire === wire) card.wire = null
  }
}

// Beside the mosaic it is in sight, and scrolling would move the tiles under the pointer; below it, it has to come up.

function bringIntoView(number) {
  const enough = matchMedia("(max-width: 640px)").matches ? 380 : 60
  requestAnimationFrame(() => {
    const panel = document.querySelector(`.st-key-channel-${number}`)
    if (!panel) return
    const { top, bottom } = panel.getBoundingClientRect()
    const inSight = Math.min(bottom, innerHeight) - Math.max(top, 60)
    if (inSight < Math.min(enough, bottom - top)) {
      panel.scrollIntoView({ block: "nearest" }) // at once: a tap that follows would miss what still moves
    }
  })
}
