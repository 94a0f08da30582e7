internal import EventLoop
internal import Glibc
internal import TransportSecurity

/// The bytes of one connection: TLS, or plain TCP for the loopback listener of the metrics.
struct Transport: ~Copyable {
    private let descriptor: OwnedDescriptor
    private let tls: TLSConnection?

    /// The result of a read, a write or a step of the handshake.
    enum Outcome {
        /// The number of bytes, at least one. For a handshake: it is finished.
        case done(Int)
        case wantsRead
        case wantsWrite
        /// The peer has closed, or its bytes are not TLS.
        case closed
    }

    /// Creates the transport, with plain TCP when `context` is nil.
    init(takingOwnershipOf descriptor: consuming OwnedDescriptor, context: TLSServerContext?) throws(TLSError) {
        if let context {
            tls = try TLSConnection(context: context, descriptor: descriptor.rawValue)
        } else {
            tls = nil
        }
        self.descriptor = descriptor
    }

    var rawValue: CInt { descriptor.rawValue }

    /// True when bytes wait that will not make the socket readable.
    var hasPendingBytes: Bool { tls?.hasPendingBytes ?? false }

    var needsHandshake: Bool { tls != nil }

    func handshake() -> Outcome {
        guard let tls else { return .done(0) }
        do throws(TLSError) {
            switch try tls.handshake() {
            case .finished: return .done(0)
            case .wantsRead: return .wantsRead
            case .wantsWrite: return .wantsWrite
            }
        } catch { return .closed }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        guard let tls else {
            return Self.outcome(of: Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count), wait: .wantsRead)
        }
        do throws(TLSError) {
            switch try tls.read(into: buffer) {
            case .bytes(let count): return .done(count)
            case .wantsRead: return .wantsRead
            case .wantsWrite: return .wantsWrite
            case .closed: return .closed
            }
        } catch { return .closed }
    }

    func write(_ buffer: UnsafeRawBufferPointer) -> Outcome {
        guard let tls else {
            let count = send(descriptor.rawValue, buffer.baseAddress, buffer.count, CInt(MSG_NOSIGNAL))
            return Self.outcome(of: count, wait: .wantsWrite)
        }
        do throws(TLSError) {
            switch try tls.write(buffer) {
            case .bytes(let count): return .done(count)
            case .wantsRead: return .wantsRead
            case .wantsWrite: return .wantsWrite
            }
        } catch { return .closed }
    }

    /// The number of bytes that the kernel holds and the peer has not acknowledged. A client's progress is measured by
    /// these: with kernel buffers of megabytes, a reply to a slow client would seem stuck for minutes.
    var untakenCount: Int {
        var count: CInt = 0
        return ioctl(descriptor.rawValue, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Sends TLS's notification of the end. Best effort.
    func sendCloseNotify() { tls?.shutdown() }

    /// Makes a later close discard the bytes that the peer has not taken, instead of the kernel's resending them.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor.rawValue, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Announces the end of sending. The peer's remaining bytes can be read and discarded.
    func finishWriting() {
        tls?.shutdown()
        _ = Glibc.shutdown(descriptor.rawValue, CInt(SHUT_WR))
    }

    /// Ends the connection in both directions without a notification, also in TLS.
    func disconnect() { _ = Glibc.shutdown(descriptor.rawValue, CInt(SHUT_RDWR)) }

    /// Discards up to `limit` waiting bytes of the socket. Returns whether more may arrive.
    func discardInput(limit: Int, using buffer: UnsafeMutableRawBufferPointer) -> Bool {
        var discarded = 0
        while discarded < limit {
            let count = Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count)
            if count > 0 {
                discarded += count
            } else {
                return count < 0 && (errno == EAGAIN || errno == EINTR)
            }
        }
        return true
    }

    private static func outcome(of count: Int, wait: Outcome) -> Outcome {
        if count > 0 { return .done(count) }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? wait : .closed
    }
}
