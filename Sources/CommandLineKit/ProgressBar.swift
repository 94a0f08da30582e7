/// How far a long command has come, on standard error: a bar that is drawn over on a terminal, a line for every tenth
/// elsewhere.
package struct ProgressBar {
    private let console: Console
    private let what: String
    private var tenths = 0
    private var shown = ""
    private var drawnAt: ContinuousClock.Instant?

    private static let width = 30

    package init(_ console: Console, _ what: String) {
        self.console = console
        self.what = what
    }

    /// Shows the progress, a few times a second at most.
    package mutating func show(_ done: Int, of total: Int, note: String) {
        // More may have come since they were counted.
        let total = max(total, done, 1)
        if console.isTerminal {
            let now = ContinuousClock.now
            if let drawnAt, now - drawnAt < .milliseconds(100), done < total { return }
            drawnAt = now
            let filled = Self.width * done / total
            let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
            draw("[\(bar)] \(done) of \(total) \(what), \(note)")
        } else if done * 10 / total > tenths {
            tenths = done * 10 / total
            console.writeError("\(done) of \(total) \(what), \(note)\n")
        }
    }

    /// Shows how much is done of something whose whole nobody knows: a few times a second on a terminal, twice a minute
    /// elsewhere. What is done at once says nothing.
    package mutating func show(_ done: Int) {
        let now = ContinuousClock.now
        guard let drawnAt else { return self.drawnAt = now }
        guard now - drawnAt >= (console.isTerminal ? .milliseconds(100) : .seconds(30)) else { return }
        self.drawnAt = now
        if console.isTerminal { draw("\(done) \(what)") } else { console.writeError("\(done) \(what)\n") }
    }

    /// Leaves the last state where it stands.
    package mutating func end() {
        if !shown.isEmpty { console.writeError("\n") }
        shown = ""
    }

    private mutating func draw(_ text: String) {
        let line = VisibleText.visible(text)
        let rest = String(repeating: " ", count: max(0, shown.count - line.count))
        console.draw("\r\(line)\(rest)")
        shown = line
    }
}
