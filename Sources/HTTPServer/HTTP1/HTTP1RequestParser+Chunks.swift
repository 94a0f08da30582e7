internal import HTTPCore

extension HTTP1RequestParser {
    /// The data of the chunks that have come, as one piece: a chunk of one byte must not cost what a piece costs.
    ///
    /// At most ``HTTP1Limits/chunksPerPiece`` chunks are read, so that whoever counts pieces counts the work.
    ///
    /// - Returns: No bytes when more have to come, and when the last chunk has come.
    /// - Throws: What is wrong with the first chunk. What is wrong with a later one is thrown by the next call.
    mutating func takeChunks() throws(HTTP1Error) -> ZeroizingBuffer {
        if case .chunkData(let remaining) = state, remaining >= bufferedByteCount {
            guard let bytes = takeBytes(atMost: remaining) else { return ZeroizingBuffer() }
            state = bytes.count == remaining ? .chunkEnd : .chunkData(remaining: remaining - bytes.count)
            return bytes
        }
        var piece = ZeroizingBuffer()
        var position = 0
        do throws(HTTP1Error) {
            // Held here, so that nothing has to hold it for each chunk.
            let buffer = buffer
            try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
                try readChunks(bytes, at: &position, into: &piece)
            }
        } catch {
            failure = error
            if piece.isEmpty { throw error }
        }
        use(position)
        return piece
    }

    /// Reads chunks from `bytes`, which are those from ``start`` on.
    private mutating func readChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, at position: inout Int, into piece: inout ZeroizingBuffer
    ) throws(HTTP1Error) {
        for _ in 0..<limits.chunksPerPiece {
            if case .chunkLine = state {
                guard
                    let line = try findLine(
                        in: bytes, from: position, maximum: limits.chunkLine, else: .syntax(.malformedChunk))
                else { return }
                let size = try chunks.readSize(bytes, line: line)
                try checkBodyLimit(adding: size)
                position = scanned
                state = size == 0 ? .trailer : .chunkData(remaining: size)
            }
            if case .chunkData(let remaining) = state {
                let count = min(remaining, bytes.count - position)
                if piece.isEmpty { piece.reserveCapacity(min(max(count, 1_024), bytes.count)) }
                let data = UnsafeBufferPointer(rebasing: bytes[position..<(position + count)])
                piece.append(UnsafeRawBufferPointer(data))
                received += count
                position += count
                state = count == remaining ? .chunkEnd : .chunkData(remaining: remaining - count)
            }
            guard case .chunkEnd = state else { return }
            guard position < bytes.count else { return }
            guard bytes[position] == ASCII.carriageReturn else { throw .syntax(.malformedChunk) }
            guard position + 1 < bytes.count else { return }
            guard bytes[position + 1] == ASCII.lineFeed else { throw .syntax(.malformedChunk) }
            position += 2
            scanned = position
            state = .chunkLine
        }
    }
}
