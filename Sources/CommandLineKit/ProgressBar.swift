/// How far a long command has come: a bar on standard error, where that is a terminal. Elsewhere nothing is written, so that a
/// job that succeeds says nothing in cron's mail.
package struct ProgressBar {
    private let console: Console
    private let what: String
    private var shown = ""
    private var drawnAt: ContinuousClock.Instant?

    private static let width = 30

    package init(_ console: Console, _ what: String) {
        self.console = console
        self.what = what
    }

    /// Shows the progress, a few times a second at most.
    package mutating func show(_ done: Int, of total: Int, note: String) {
        guard console.isTerminal else { return }
        // More may have come since they were counted.
        let total = max(total, done, 1)
        let now = ContinuousClock.now
        if let drawnAt, now - drawnAt < .milliseconds(100), done < total { return }
        drawnAt = now
        let filled = Self.width * done / total
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
        draw("[\(bar)] \(done) of \(total) \(what), \(note)")
    }

    /// Shows how much is done of something whose whole is not known, a few times a second at most. What is done at once says
    /// nothing.
    package mutating func show(_ done: Int) {
        guard console.isTerminal else { return }
        let now = ContinuousClock.now
        guard let drawnAt else { return self.drawnAt = now }
        guard now - drawnAt >= .milliseconds(100) else { return }
        self.drawnAt = now
        draw("\(done) \(what)")
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
