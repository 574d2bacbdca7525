/* Browsers start no worker from a file. For pages that are opened as files, the site's search runs in a hidden frame that takes a worker's
 * place: what is said to it are events of its window, and what it says are events here. */
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inside = this.frame.contentWindow;
            inside.postMessage = (data) => {
                const event = new MessageEvent("message", { data });
                this.dispatchEvent(event);
                this.onmessage?.(event);
            };
            const script = inside.document.createElement("script");
            script.src = url;
            this.ready = new Promise((resolve) => (script.onload = resolve));
            inside.document.body.append(script);
        }
        postMessage(data) {
            const inside = this.frame.contentWindow;
            this.ready.then(() => {
                const event = new inside.MessageEvent("message", { data: structuredClone(data) });
                inside.dispatchEvent(event);
            });
        }
        terminate() {
            this.frame.remove();
        }
    };
}
