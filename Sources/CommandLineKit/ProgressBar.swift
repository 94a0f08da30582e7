/// The progress of a long command: a bar on standard error if that is a terminal, otherwise nothing. A successful job
/// then causes no mail from cron.
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

    /// Shows the progress, at most a few times a second.
    package mutating func show(_ done: Int, of total: Int, note: String) {
        guard console.isTerminal else { return }
        // The number may have grown since it was counted.
        let total = max(total, done, 1)
        let now = ContinuousClock.now
        if let drawnAt, now - drawnAt < .milliseconds(100), done < total { return }
        drawnAt = now
        let filled = Self.width * done / total
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
        draw("[\(bar)] \(done) of \(total) \(what), \(note)")
    }

    /// Shows the finished amount when the total is unknown, at most a few times a second. Short work shows nothing.
    package mutating func show(_ done: Int) {
        guard console.isTerminal else { return }
        let now = ContinuousClock.now
        guard let drawnAt else { return self.drawnAt = now }
        guard now - drawnAt >= .milliseconds(100) else { return }
        self.drawnAt = now
        draw("\(done) \(what)")
    }

    /// Ends the line, with the last state in it.
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
