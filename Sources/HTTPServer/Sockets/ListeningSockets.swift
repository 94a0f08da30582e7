internal import EventLoop
internal import Glibc
internal import HTTPCore

/// Listening sockets in transit from one process to another, with one owner that closes them.
public final class ListeningSockets: Sendable {
    /// The descriptors, for system calls during the owner's life.
    public let rawValues: [CInt]

    /// Takes ownership of `descriptors`.
    public init(takingOwnershipOf descriptors: [CInt]) { rawValues = descriptors }

    deinit { for descriptor in rawValues { close(descriptor) } }

    /// Returns the sockets if there is at least one and all listen at addresses of `address`. Port 0 stands for any.
    public func ifListening(at address: SocketAddress) -> ListeningSockets? {
        guard let resolved = try? ResolvedAddress.all(resolving: address), !rawValues.isEmpty else { return nil }
        let wanted = resolved.map(\.storage.clientAddress.address)
        let fits = rawValues.allSatisfy { descriptor in
            guard Self.isListening(descriptor), let bound = sockaddr_storage(boundTo: descriptor)?.clientAddress else {
                return false
            }
            return wanted.contains(bound.address) && (address.port == 0 || bound.port == address.port)
        }
        return fits ? self : nil
    }

    /// The numeric addresses of the sockets, each once.
    var addresses: [SocketAddress] {
        var found: [SocketAddress] = []
        for descriptor in rawValues {
            guard let bound = sockaddr_storage(boundTo: descriptor)?.numericAddress else { continue }
            if !found.contains(bound) { found.append(bound) }
        }
        return found
    }

    private static func isListening(_ descriptor: CInt) -> Bool {
        var listens: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0
    }

    /// Returns copies for the loop `index` of `count`. Each socket has a loop that accepts from it, and each loop at
    /// least one socket.
    func copies(forLoop index: Int, of count: Int) throws(EventLoopError) -> [CInt] {
        let mine =
            index < rawValues.count
            ? stride(from: index, to: rawValues.count, by: count).map { rawValues[$0] }
            : [rawValues[index % rawValues.count]]
        var copies: [CInt] = []
        for descriptor in mine {
            do throws(EventLoopError) {
                copies.append(try OwnedDescriptor(copying: descriptor).release())
            } catch {
                for copy in copies { close(copy) }
                throw error
            }
        }
        return copies
    }
}
