// browsers join keys within a second to the name of one option: a form is written anew after the last of them, or
// once the field is left, before anything else can be pressed
const SECOND = 1000
let waiting = null, timer = 0
const send = () => {
  clearTimeout(timer)
  if (waiting) Shiny.setInputValue("answer", {...waiting.dataset, value: waiting.value}, {priority: "event"})
  waiting = null
}
let keyed = -SECOND
document.addEventListener("keydown", event => { keyed = event.timeStamp })
document.addEventListener("change", event => {
  const own = event.target
  if (!own.matches(".answer")) return
  if (waiting !== own) send()
  waiting = own
  clearTimeout(timer)
  if (own.matches("select") && performance.now() < keyed + SECOND) timer = setTimeout(send, SECOND)
  else send()
})
document.addEventListener("focusout", send)
document.addEventListener("click", event => {
  const own = event.target
  if (own.matches(".copy")) navigator.clipboard.writeText(own.nextElementSibling.textContent)
  if (own.matches(".act")) Shiny.setInputValue(own.dataset.act, own.dataset.release, {priority: "event"})
})
let focused = ""
document.addEventListener("focusin", event => { focused = event.target.id })
$(document).on("shiny:connected", () => Shiny.addCustomMessageHandler("schema", ({text, faults}) => {
  document.getElementById("toml").value = text
  for (const place of document.querySelectorAll(".fault")) {
    const said = faults[place.id] || "", box = document.getElementById(place.id.replace("fault", "field"))
    if (place.textContent !== said) place.textContent = said
    box?.setAttribute("aria-invalid", said !== "")
    box?.setAttribute("aria-describedby", place.id)
    if (said) place.closest("details")?.setAttribute("open", "")
  }
}))
// forms that are written anew keep the focus where it was
$(document).on("shiny:value", () => setTimeout(() => {
  if (document.activeElement === document.body && focused) document.getElementById(focused)?.focus()
}))
