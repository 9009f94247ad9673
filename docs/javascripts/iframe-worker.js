/* Search in pages that are opened from a folder: browsers run no workers there, so that the search's worker runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "search"
      document.body.appendChild(frame)
      const scope = frame.contentWindow
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.deliver = (data) => scope.dispatchEvent(new scope.MessageEvent("message", { data }))
      const script = scope.document.createElement("script")
      script.src = new URL(url, document.baseURI).href
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach(this.deliver)
      }
      scope.document.body.appendChild(script)
    }

    postMessage(data) {
      if (this.ready) this.deliver(data)
      else this.waiting.push(data)
    }

    terminate() {}
  }
  window.Worker = window.IFrameWorker
}
