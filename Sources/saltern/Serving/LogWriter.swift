import Glibc
import SalternServer
import Synchronization

/// Writes log lines to a descriptor from a thread of its own, several at a time, so that a slow reader of the log
/// never holds up a request.
///
/// Beyond four megabytes that nobody reads, lines are dropped and counted. An error is written within
/// milliseconds like everything else, and ``flush()`` waits for the rest at the end.
final class LogWriter: LogSink {
    private struct Pending {
        var bytes: [UInt8] = []
        var dropped = 0
        var isWriting = false
    }

    private let descriptor: CInt
    private let pending = Mutex(Pending())

    private static let limit = 4 * 1_024 * 1_024
    /// Lines of this time are written together.
    private static let gatheringMicroseconds: UInt32 = 10_000

    /// Writes to `descriptor`, which stays open for the life of the process.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        // Retained by the thread for the life of the process.
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        let code = pthread_create(&thread, nil, { context in
            guard let context else { return nil }
            let writer = Unmanaged<LogWriter>.fromOpaque(context).takeUnretainedValue()
            while true {
                usleep(LogWriter.gatheringMicroseconds)
                writer.flush()
            }
        }, context)
        precondition(code == 0, "the system grants no thread for the log")
        pthread_detach(thread)
    }

    func write(_ line: [UInt8], level: LogLevel) {
        pending.withLock { pending in
            if pending.bytes.count + line.count > Self.limit {
                pending.dropped += 1
            } else {
                pending.bytes.append(contentsOf: line)
            }
        }
    }

    /// Writes what is there.
    func flush() {
        let (bytes, dropped) = pending.withLock { pending in
            defer {
                pending.bytes.removeAll(keepingCapacity: pending.bytes.capacity <= 256 * 1_024)
                pending.dropped = 0
            }
            return (pending.bytes, pending.dropped)
        }
        writeAll(bytes)
        if dropped > 0 { writeAll(Array(#"{"level":"error","event":"log_lines_dropped","count":\#(dropped)}"#.utf8) + [10]) }
    }

    private func writeAll(_ bytes: [UInt8]) {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno != EINTR && errno != EAGAIN { return }
            written += max(count, 0)
        }
    }
}
