"""Renders pages in Chromium, on screens of several widths and on paper, and prints one line for each layout error.

    report_layout.py PAGE...
"""
import json
import os
import subprocess
import sys
import tempfile

WIDTHS = [(1280, "screen"), (760, "screen"), (400, "screen"), (718, "print")]  # 718 pixels are the width of A4 without margins

CHECK = """(() => {
  const problems = [], width = document.documentElement.clientWidth, seen = e => e.getClientRects().length > 0;
  const boxOf = e => e.getBoundingClientRect();
  const say = (what, e) => problems.push(what + ': ' + e.tagName + ' "' + e.textContent.trim().slice(0, 40) + '"');
  if (document.documentElement.scrollWidth > width) problems.push('the page scrolls sideways');
  for (const e of document.querySelectorAll('body *')) {
    const r = boxOf(e);
    if (r.width > 0 && !e.closest('.scroll, .h') && (r.left < -1 || r.right > width + 1)) say('leaves the page', e);
  }
  for (const svg of document.querySelectorAll('svg.chart')) {
    const b = boxOf(svg), labels = [...svg.querySelectorAll('text')].filter(t => !t.closest('.h'));
    for (const t of labels) {
      const r = boxOf(t);
      if (r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1)
        say('leaves its picture', t);
      for (const u of labels) {
        const s = boxOf(u);
        if (t !== u && Math.min(r.right, s.right) - Math.max(r.left, s.left) > 1 &&
            Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top) > 4) say('lies over another label', t);
      }
    }
    const size = parseFloat(getComputedStyle(labels[0]).fontSize) * b.width / 480;
    if (size < 7.5 || size > 17) problems.push('letters of ' + size.toFixed(1) + ' pixels in a chart');
  }
  for (const e of document.querySelectorAll('.scroll')) {
    if (seen(e) && FITS && e.scrollWidth > e.clientWidth + 1) say('is cut by ' + (e.scrollWidth - e.clientWidth), e);
  }
  for (const bar of document.querySelectorAll('svg.bar')) if (boxOf(bar).width < 150) say('is short', bar);
  return JSON.stringify(problems);
})()"""


class Browser:
    """A Chromium process, controlled by its debugging protocol over file descriptors 3 and 4."""

    def __init__(self, profile):
        read, self.write = os.pipe()
        self.read, write = os.pipe()

        def connect():
            high = [os.dup(read), os.dup(write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--remote-debugging-pipe", "--user-data-dir=" + profile]
        self.process = subprocess.Popen(command, preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.count, self.rest, self.session = 0, b"", None

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 20)
            if not more:
                raise SystemExit("chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, page):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Page.navigate", url="file://" + os.path.abspath(page))
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def problems(self, width, medium):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=medium)
        # On a wide screen and on paper nothing may be cut off; on narrow screens tables scroll.
        check = CHECK.replace("FITS", "true" if width > 1000 or medium == "print" else "false")
        return json.loads(self.call("Runtime.evaluate", expression=check)["result"]["value"])


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            for page in sys.argv[1:]:
                browser.session = None
                browser.open(page)
                for width, medium in WIDTHS:
                    for problem in browser.problems(width, medium):
                        print(f"{os.path.basename(page)} at {width} on {medium}: {problem}")
        finally:
            browser.process.terminate()
            browser.process.wait()


if __name__ == "__main__":
    main()
