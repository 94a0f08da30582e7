import Dispatch
import Foundation
import HTTPCore
import SalternServer
import Synchronization

/// Writes log lines to a descriptor from a thread of its own, several at a time, so that a slow reader of the log
/// never holds up a request.
///
/// Lines of ten milliseconds are written together. Beyond four megabytes that nobody reads, lines are dropped and
/// counted, and so are lines that cannot be written because the disk is full; how many it were is said as soon as that can
/// be written. A reader that has stopped costs nothing but these: the thread sleeps until it goes on, and
/// ``flush(within:)`` waits for it no longer than it is told to.
final class LogWriter: LogSink {
    private struct Pending {
        var bytes: [UInt8] = []
        var dropped = 0
        var isWriting = false
        /// Who wants to know when everything is written.
        var waiting: [DispatchSemaphore] = []

        var isEmpty: Bool { bytes.isEmpty && dropped == 0 && !isWriting }
    }

    private let descriptor: CInt
    private let kind: Kind
    private let pending = Mutex(Pending())
    // Safe to share: only the writer's thread touches it.
    private nonisolated(unsafe) var losses = LogLosses()
    private let now: @Sendable () -> UTCTimestamp
    private let linesWait = DispatchSemaphore(value: 0)
    private let dropped = Atomic<Int>(0)

    private static let limit = 4 * 1_024 * 1_024
    /// Memory for so many bytes is kept for further lines.
    private static let keptCapacity = 64 * 1_024
    /// Lines of this time are written together.
    private static let gatheringMicroseconds: UInt32 = 10_000

    /// What is written to decides how that can be done without ever being stuck in it.
    private enum Kind {
        case file
        case socket
        /// A pipe or a terminal: what `poll` says is writable takes `PIPE_BUF` bytes.
        case pipe

        init(of descriptor: CInt) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                self = .pipe
                return
            }
            switch status.st_mode & S_IFMT {
            case S_IFREG: self = .file
            case S_IFSOCK: self = .socket
            default: self = .pipe
            }
        }
    }

    /// - Parameters:
    ///   - descriptor: What is written to; stays open for the life of the process.
    ///   - now: The time of the lines that it adds.
    init(descriptor: CInt, now: @escaping @Sendable () -> UTCTimestamp) {
        self.descriptor = descriptor
        self.now = now
        kind = Kind(of: descriptor)
        // Retained by the thread, which runs for the life of the process.
        let thread = Thread { [self] in
            // It takes turns with the one that lines are gathered in.
            var buffer: [UInt8] = []
            while true {
                linesWait.wait()
                usleep(Self.gatheringMicroseconds)
                writePending(&buffer)
            }
        }
        thread.name = "log"
        thread.start()
    }

    func write(_ line: ZeroizingBuffer, level: LogLevel) {
        let isFirst = pending.withLock { pending in
            let isFirst = pending.bytes.isEmpty && pending.dropped == 0
            if pending.bytes.count + line.count > Self.limit {
                pending.dropped += 1
                dropped.add(1, ordering: .relaxed)
            } else {
                line.withUnsafeBytes { pending.bytes.append(contentsOf: $0) }
            }
            return isFirst
        }
        if isFirst { linesWait.signal() }
    }

    var droppedLines: Int { dropped.load(ordering: .relaxed) }

    /// Waits until what is there has been written, or the time is up. Returns whether it has.
    @discardableResult
    func flush(within time: Duration) -> Bool {
        let written = DispatchSemaphore(value: 0)
        let isDone = pending.withLock { pending in
            if pending.isEmpty { return true }
            pending.waiting.append(written)
            return false
        }
        if isDone { return true }
        let milliseconds = Int(time / .milliseconds(1))
        return written.wait(timeout: .now() + .milliseconds(milliseconds)) == .success
    }

    /// Writes until nothing is there. On the writer's thread only, so that lines leave in order.
    private func writePending(_ buffer: inout [UInt8]) {
        while true {
            buffer.removeAll(keepingCapacity: buffer.count <= Self.keptCapacity)
            let droppedBefore = pending.withLock { pending in
                swap(&pending.bytes, &buffer)
                let dropped = pending.dropped
                pending.dropped = 0
                pending.isWriting = !buffer.isEmpty || dropped > 0
                if !pending.isWriting {
                    for semaphore in pending.waiting { semaphore.signal() }
                    pending.waiting = []
                }
                return dropped
            }
            if buffer.isEmpty, droppedBefore == 0 { return }
            reportLosses()
            let unreported = losses.count
            if unreported == 0 { writeAll(buffer) } else { losses.note(buffer, writtenUpTo: 0) }
            dropped.add(losses.count - unreported, ordering: .relaxed)
            losses.count += droppedBefore
            reportLosses()
        }
    }

    /// Tells the reader how many lines it misses, in a line of its own. When that cannot be written either, it is tried
    /// again with the next line.
    private func reportLosses() {
        guard losses.count > 0 else { return }
        let count = losses.count
        losses.count = 0
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("time", now())
            writer.member("level", LogLevel.error.rawValue)
            writer.member("event", "log_lines_dropped")
            writer.member("count", count)
        }
        writeAll(writer.finishLine().withUnsafeBytes { Array($0) })
        // This line is none of those that are missed.
        if losses.count > 0 { losses.count = count }
    }

    /// Writes lines, and takes note of those that cannot be written: the disk is full, or nobody reads.
    private func writeAll(_ lines: [UInt8]) {
        if losses.isTorn {
            guard write([ASCII.lineFeed]) == 1 else { return losses.note(lines, writtenUpTo: 0) }
            losses.isTorn = false
        }
        losses.note(lines, writtenUpTo: write(lines))
    }

    /// Writes as much as can be written. Returns how many bytes that are.
    private func write(_ bytes: [UInt8]) -> Int {
        var written = 0
        while written < bytes.count {
            var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&wish, 1, -1) > 0 else {
                if errno == EINTR { continue }
                return written
            }
            let count = bytes[written...].withUnsafeBytes { rest in
                switch kind {
                case .file: Foundation.write(descriptor, rest.baseAddress, rest.count)
                case .pipe: Foundation.write(descriptor, rest.baseAddress, min(rest.count, Int(PIPE_BUF)))
                case .socket:
                    send(descriptor, rest.baseAddress, rest.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
                }
            }
            // Somebody else may fill the pipe between the two calls.
            if count < 0 && errno != EINTR && errno != EAGAIN { return written }
            written += max(count, 0)
        }
        return written
    }
}

/// The lines that a log has lost, as far as nobody was told of them.
struct LogLosses {
    var count = 0
    /// Whether what was written last is the beginning of a line.
    var isTorn = false

    /// Takes note of whole lines of which only the first bytes were written.
    mutating func note(_ lines: [UInt8], writtenUpTo end: Int) {
        guard end < lines.count else { return }
        count += lines[end...].count { $0 == ASCII.lineFeed }
        guard end > 0 else { return }
        isTorn = lines[end - 1] != ASCII.lineFeed
        // Nothing but its end is missing, and that follows.
        if lines[end] == ASCII.lineFeed { count -= 1 }
    }
}
