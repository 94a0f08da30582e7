import Dispatch
import Foundation
import HTTPCore
import SalternServer
import Synchronization

/// Writes log lines to a descriptor from a thread of its own, several at a time, so that a slow reader of the log
/// never holds up a request.
///
/// Lines of ten milliseconds are written together. Beyond four megabytes that nobody reads, lines are dropped and
/// counted. A reader that has stopped costs nothing but these: the thread sleeps until it goes on, and
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
    private let linesWait = DispatchSemaphore(value: 0)

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

    /// Writes to `descriptor`, which stays open for the life of the process.
    init(descriptor: CInt) {
        self.descriptor = descriptor
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

    func write(_ line: WipedBytes, level: LogLevel) {
        let isFirst = pending.withLock { pending in
            let isFirst = pending.bytes.isEmpty && pending.dropped == 0
            if pending.bytes.count + line.count > Self.limit {
                pending.dropped += 1
            } else {
                line.withUnsafeBytes { pending.bytes.append(contentsOf: $0) }
            }
            return isFirst
        }
        if isFirst { linesWait.signal() }
    }

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
            let dropped = pending.withLock { pending in
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
            if buffer.isEmpty, dropped == 0 { return }
            writeAll(buffer)
            if dropped > 0 {
                writeAll(Array("{\"level\":\"error\",\"event\":\"log_lines_dropped\",\"count\":\(dropped)}\n".utf8))
            }
        }
    }

    private func writeAll(_ bytes: [UInt8]) {
        var written = 0
        while written < bytes.count {
            var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&wish, 1, -1) > 0 else {
                if errno == EINTR { continue }
                return
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
            if count < 0 && errno != EINTR && errno != EAGAIN { return }
            written += max(count, 0)
        }
    }
}
