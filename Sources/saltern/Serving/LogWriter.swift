import Dispatch
import Foundation
import SalternServer
import Synchronization

/// Writes log lines to a descriptor from a thread of its own, several at a time, so that a slow reader of the log
/// never holds up a request.
///
/// Lines of ten milliseconds are written together. Beyond four megabytes that nobody reads, lines are dropped and
/// counted. ``flush()`` writes the rest at the end.
final class LogWriter: LogSink {
    private struct Pending {
        var bytes: [UInt8] = []
        var dropped = 0
    }

    private let descriptor: CInt
    private let pending = Mutex(Pending())
    /// Held while lines are taken and written, so that they leave in order.
    private let output = Mutex(())
    private let linesWait = DispatchSemaphore(value: 0)

    private static let limit = 4 * 1_024 * 1_024
    /// Lines of this time are written together.
    private static let gatheringMicroseconds: UInt32 = 10_000

    /// Writes to `descriptor`, which stays open for the life of the process.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        // Retained by the thread, which runs for the life of the process.
        let thread = Thread { [self] in
            while true {
                linesWait.wait()
                usleep(Self.gatheringMicroseconds)
                flush()
            }
        }
        thread.name = "log"
        thread.start()
    }

    func write(_ line: [UInt8], level: LogLevel) {
        let isFirst = pending.withLock { pending in
            if pending.bytes.count + line.count > Self.limit {
                pending.dropped += 1
                return false
            }
            pending.bytes.append(contentsOf: line)
            return pending.bytes.count == line.count
        }
        if isFirst { linesWait.signal() }
    }

    /// Writes what is there.
    func flush() {
        output.withLock { _ in
            let taken = pending.withLock { pending in
                var taken = Pending()
                swap(&taken, &pending)
                return taken
            }
            writeAll(taken.bytes)
            if taken.dropped > 0 {
                writeAll(
                    Array("{\"level\":\"error\",\"event\":\"log_lines_dropped\",\"count\":\(taken.dropped)}\n".utf8))
            }
        }
    }

    private func writeAll(_ bytes: [UInt8]) {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR && errno != EAGAIN { return }
            written += max(count, 0)
        }
    }
}
