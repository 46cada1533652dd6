//! [`Wal`]: the write-ahead log, fsynced before callers are acknowledged.
//!
//! The file `hapax.journal` beside the database. The changes of a batch are appended to it and synced together. The
//! database gets them afterwards, in a transaction that stays open for many batches. After that commit the next
//! *generation* is written over the last one, from the beginning of the file. The database stores the last generation that it
//! holds completely, so recovery after a crash knows whether the log has more. The layout is in `spec/record-format.md`.
//!
//! Two things distinguish damage from a torn write:
//!
//! - The file begins with a generation number that is always ahead of the database's. It is durable before
//!   the commit that it is ahead of, so a log that is missing, empty or older than the database is detected.
//! - After each sync an empty frame, the trailer, is written behind the batch; the next batch overwrites it. A batch that is
//!   incomplete and has a valid frame behind it was damaged; a batch torn by a crash has none.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hapax_core::codec::{self, Encoded};
use hapax_core::{Record, RecordId, Timestamp};
use rusqlite::ffi;

use crate::config::SyncMode;
use crate::error::{Failure, Phase};

/// The first bytes of a frame, with the version of its layout.
const MAGIC: [u8; 8] = *b"HAPXJRN2";
/// The first bytes of a generation header.
const GENERATION_MAGIC: [u8; 8] = *b"HAPXMRK2";
/// Magic, generation number and checksum.
const GENERATION_HEADER_LENGTH: usize = 20;
/// There are two generation headers in separate sectors, written in turn, so one of them is always valid.
const GENERATION_HEADER_ROOM: u64 = 512;
/// Where the frames begin.
const FRAMES_AT: u64 = 2 * GENERATION_HEADER_ROOM;
/// Magic, generation, salt, batch, time, part, length and checksum.
const FRAME_HEADER_LENGTH: usize = 52;
/// A frame of this length is written, and the batch continues in another. Bounds the memory of a batch.
const FRAME_BYTES: usize = 1 << 20;
/// A log of this length is due for a commit. Bounds the replay after a crash.
const LENGTH_MAX: u64 = 4 << 20;
/// The size to which a larger file is cut when a generation begins.
const LENGTH_KEPT: u64 = 4 * LENGTH_MAX;
/// Stands for the length of an absent outcome.
const NO_OUTCOME: u32 = u32::MAX;

const PUT: u8 = 1;
const REMOVE: u8 = 2;

/// The batches between two commits.
///
/// The log holds outcomes verbatim, until they are overwritten. The salt is secret, so that an outcome cannot be crafted
/// to look like a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) salt: i64,
}

/// The write-ahead log of the process that owns the store.
#[derive(Debug)]
pub(crate) struct Wal {
    path: PathBuf,
    sync_mode: SyncMode,
    length_max: u64,
    file: Arc<File>,
    generation: Generation,
    /// Whether the header has the next generation, durably.
    header_is_ahead: bool,
    /// Where the next batch begins. Everything before it is durable.
    end: u64,
    batch: WalBatch,
}

/// Changes that are synced together.
#[derive(Debug)]
struct WalBatch {
    number: u64,
    now: Timestamp,
    /// Offset and length of its frames that are written already.
    written: Vec<(u64, usize)>,
    /// The frame that is being filled, with room for its header.
    frame: Vec<u8>,
}

/// A change to a record.
#[derive(Debug)]
pub(crate) enum WalEntry {
    Put(Box<Record>),
    Remove(RecordId),
}

/// The changes of one frame, decided at one time.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) now: Timestamp,
    pub(crate) entries: Vec<WalEntry>,
}

/// Why the log cannot be read.
#[derive(Debug)]
pub(crate) enum WalReadError {
    Io(io::Error),
    /// An acknowledged batch is missing or damaged.
    Damaged(String),
}

impl From<io::Error> for WalReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl WalBatch {
    fn numbered(number: u64) -> Self {
        Self {
            number,
            now: Timestamp::from_millis(0),
            written: Vec::new(),
            frame: vec![0; FRAME_HEADER_LENGTH],
        }
    }

    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.frame.len() == FRAME_HEADER_LENGTH
    }
}

impl Wal {
    /// The log in `file`, which is at `path`; its next frames are of `generation`.
    pub(crate) fn new(path: PathBuf, file: File, sync_mode: SyncMode, generation: Generation) -> Self {
        let (file, length_max, batch) = (Arc::new(file), LENGTH_MAX, WalBatch::numbered(0));
        Self { path, sync_mode, length_max, file, generation, header_is_ahead: false, end: FRAMES_AT, batch }
    }

    /// Ensures that the header's generation is not behind the database's, where an earlier process left none.
    pub(crate) fn ensure_header(&self) -> io::Result<()> {
        if header_generation(&mut &*self.file)?.is_none_or(|found| found < self.generation.number) {
            self.write_header(self.generation.number)?;
        }
        self.file.sync_all()
    }

    /// Ensures that the header is ahead of the current generation, which may be committed then.
    pub(crate) fn advance_header(&mut self) -> Result<(), Failure> {
        if !self.header_is_ahead {
            self.write_header(self.generation.number + 1).map_err(write_failure)?;
            self.sync_file()?;
            self.header_is_ahead = true;
        }
        Ok(())
    }

    fn write_header(&self, number: u64) -> io::Result<()> {
        write_at(&self.file, (number % 2) * GENERATION_HEADER_ROOM, &generation_header(number))
    }

    fn sync_file(&self) -> Result<(), Failure> {
        match self.sync_mode {
            SyncMode::Full => self.file.sync_data().map_err(sync_failure),
            SyncMode::Off => Ok(()),
        }
    }

    /// Sets the length from which on a commit is due.
    pub(crate) fn commit_after(&mut self, bytes: u64) {
        self.length_max = bytes;
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Bytes of the batches that are durable here and not committed to the database.
    pub(crate) fn length(&self) -> u64 {
        self.end - FRAMES_AT
    }

    /// Whether a commit is due.
    pub(crate) fn is_long(&self) -> bool {
        self.length() >= self.length_max
    }

    /// Bytes of the current batch.
    pub(crate) fn batch_length(&self) -> u64 {
        self.next_frame() - self.end + self.batch.frame.len() as u64
    }

    /// Starts over from the beginning of the file, now that the database has everything durably.
    pub(crate) fn begin_generation(&mut self, generation: Generation) {
        if self.end > LENGTH_KEPT {
            // A file that stays long is overwritten.
            let _ = self.file.set_len(LENGTH_KEPT);
        }
        self.generation = generation;
        self.header_is_ahead = false;
        self.end = FRAMES_AT;
        self.batch = WalBatch::numbered(0);
    }

    /// Begins a batch whose changes are decided at `now`.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.batch.now = now;
    }

    pub(crate) fn put(&mut self, id: &RecordId, encoded: &Encoded) -> Result<(), Failure> {
        let outcome = encoded.outcome.as_deref();
        let frame = &mut self.batch.frame;
        frame.push(PUT);
        frame.extend_from_slice(id.as_bytes());
        frame.extend_from_slice(&length_of(&encoded.head).to_le_bytes());
        frame.extend_from_slice(&outcome.map_or(NO_OUTCOME, length_of).to_le_bytes());
        frame.extend_from_slice(&encoded.head);
        frame.extend_from_slice(outcome.unwrap_or_default());
        self.write_if_long()
    }

    pub(crate) fn remove(&mut self, id: &RecordId) -> Result<(), Failure> {
        self.batch.frame.push(REMOVE);
        self.batch.frame.extend_from_slice(id.as_bytes());
        self.write_if_long()
    }

    /// Writes and fsyncs the batch.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.write_frame()?;
        if !self.header_is_ahead {
            self.write_header(self.generation.number + 1).map_err(write_failure)?;
        }
        self.sync_file()?;
        self.header_is_ahead = true;
        self.end = self.next_frame();
        self.batch.number += 1;
        self.batch.written.clear();
        self.write_trailer();
        Ok(())
    }

    /// Writes the trailer behind the last batch. It needs no sync: it survives a killed process and may be missing after a
    /// power loss. If the write fails, the batch is no less durable.
    fn write_trailer(&self) {
        let header = self.header(0, &[]);
        let _ = write_at(&self.file, self.end, &header.sealed(&[]));
    }

    fn header(&self, part: usize, payload: &[u8]) -> FrameHeader {
        FrameHeader {
            generation: self.generation,
            batch: self.batch.number,
            now_ms: self.batch.now.as_millis(),
            part: u32::try_from(part).expect("a batch has few frames"),
            length: length_of(payload),
            checksum: 0,
        }
    }

    /// Discards the unsynced batch, and erases its frames that are written already.
    pub(crate) fn discard_batch(&mut self) -> Result<(), Failure> {
        let same = WalBatch::numbered(self.batch.number);
        let batch = std::mem::replace(&mut self.batch, same);
        if batch.written.is_empty() {
            return Ok(());
        }
        // If this fails, it is unknown what recovery after a crash would replay.
        let erase = |(at, _): &(u64, usize)| write_at(&self.file, *at, &[0; FRAME_HEADER_LENGTH]);
        let erased = batch.written.iter().try_for_each(erase);
        erased.and_then(|()| self.file.sync_data()).map_err(sync_failure)?;
        if self.length() > 0 {
            self.write_trailer();
        }
        Ok(())
    }

    /// Removes the file, when the database has everything durably.
    pub(crate) fn remove_file(self) -> io::Result<()> {
        drop(self.file);
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The synced frames of this generation.
    pub(crate) fn frames(&self) -> io::Result<FrameReader> {
        FrameReader::of(Arc::clone(&self.file), self.generation, Some(self.end))
    }

    /// The frames that an earlier process may have left of this generation.
    pub(crate) fn all_frames(&self) -> io::Result<FrameReader> {
        FrameReader::of(Arc::clone(&self.file), self.generation, None)
    }

    fn write_if_long(&mut self) -> Result<(), Failure> {
        if self.batch.frame.len() < FRAME_BYTES { Ok(()) } else { self.write_frame() }
    }

    fn write_frame(&mut self) -> Result<(), Failure> {
        let mut frame = std::mem::take(&mut self.batch.frame);
        let (header, payload) = frame.split_first_chunk_mut().expect("a frame has a header");
        *header = self.header(self.batch.written.len(), payload).sealed(payload);
        let at = self.next_frame();
        write_at(&self.file, at, &frame).map_err(write_failure)?;
        self.batch.written.push((at, frame.len()));
        frame.truncate(FRAME_HEADER_LENGTH);
        frame.shrink_to(FRAME_BYTES);
        self.batch.frame = frame;
        Ok(())
    }

    /// The offset of the batch's next frame.
    fn next_frame(&self) -> u64 {
        self.batch.written.last().map_or(self.end, |(at, length)| at + *length as u64)
    }
}

fn write_at(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The parts of a frame are far below 4 GiB: outcomes are limited, and a long frame is written.
fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("outcomes are limited")
}

fn write_failure(error: io::Error) -> Failure {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let code = match error.kind() {
        StorageFull | QuotaExceeded => ffi::SQLITE_FULL,
        _ => ffi::SQLITE_IOERR_WRITE,
    };
    failure(code, &error)
}

fn sync_failure(error: io::Error) -> Failure {
    failure(ffi::SQLITE_IOERR_FSYNC, &error)
}

fn failure(code: i32, error: &io::Error) -> Failure {
    let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(error.to_string()));
    Failure::at(Phase::Wal)(error)
}

/// The fixed-size part of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FrameHeader {
    generation: Generation,
    batch: u64,
    now_ms: u64,
    part: u32,
    length: u32,
    checksum: u32,
}

impl FrameHeader {
    /// The bytes, with the checksum over `payload`.
    fn sealed(self, payload: &[u8]) -> [u8; FRAME_HEADER_LENGTH] {
        Self { checksum: self.checksum_with(payload), ..self }.to_bytes()
    }

    fn to_bytes(self) -> [u8; FRAME_HEADER_LENGTH] {
        let mut bytes = [0; FRAME_HEADER_LENGTH];
        let Generation { number, salt } = self.generation;
        let longs = [u64::from_le_bytes(MAGIC), number, salt.cast_unsigned(), self.batch, self.now_ms];
        let shorts = [self.part, self.length, self.checksum];
        let parts = longs.iter().map(|long| long.to_le_bytes());
        bytes.chunks_exact_mut(8).zip(parts).for_each(|(to, from)| to.copy_from_slice(&from));
        let parts = shorts.iter().map(|short| short.to_le_bytes());
        bytes[40..].chunks_exact_mut(4).zip(parts).for_each(|(to, from)| to.copy_from_slice(&from));
        bytes
    }

    fn from_bytes(bytes: &[u8; FRAME_HEADER_LENGTH]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        bytes.starts_with(&MAGIC).then(|| Self {
            generation: Generation { number: long(8), salt: long(16).cast_signed() },
            batch: long(24),
            now_ms: long(32),
            part: short(40),
            length: short(44),
            checksum: short(48),
        })
    }

    fn checksum_with(self, payload: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&Self { checksum: 0, ..self }.to_bytes());
        hasher.update(payload);
        hasher.finalize()
    }
}

/// Reads the frames of one generation, up to the first that is not valid.
#[derive(Debug)]
pub(crate) struct FrameReader {
    file: BufReader<Arc<File>>,
    generation: Generation,
    /// Where to stop, and the next offset.
    end: u64,
    at: u64,
    /// Batch and part of the last valid frame.
    last: Option<(u64, u32)>,
}

impl FrameReader {
    /// The frames of `generation` in `file`: all of them, or those before `end`.
    pub(crate) fn of(file: Arc<File>, generation: Generation, end: Option<u64>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let end = end.unwrap_or(length).min(length);
        Ok(Self { file: BufReader::new(file), generation, end, at: FRAMES_AT, last: None })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Frame>, WalReadError> {
        let Some((header, payload)) = self.next_frame_in_order()? else {
            return Ok(None);
        };
        self.at += (FRAME_HEADER_LENGTH + payload.len()) as u64;
        self.last = Some((header.batch, header.part));
        let mut rest = &payload[..];
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let at = self.at;
            let entry = WalEntry::take(&mut rest).map_err(|why| {
                WalReadError::Damaged(format!("an entry of the write-ahead log before byte {at}: {why}"))
            })?;
            entries.push(entry);
        }
        Ok(Some(Frame { now: Timestamp::from_millis(header.now_ms), entries }))
    }

    /// Bytes of the frames that were read.
    pub(crate) fn read_length(&self) -> u64 {
        self.at - FRAMES_AT
    }

    /// The frame at the current offset, if it is the next one in order.
    fn next_frame_in_order(&mut self) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
        let frame = self.frame_at(self.at)?;
        Ok(frame.filter(|(header, _)| match self.last {
            None => (header.batch, header.part) == (0, 0),
            Some((batch, part)) => {
                (header.batch, header.part) == (batch, part + 1)
                    || (header.batch, header.part) == (batch + 1, 0)
            }
        }))
    }

    fn frame_at(&mut self, at: u64) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
        let frame = frame_at(&mut self.file, at, self.end)?;
        Ok(frame.filter(|(header, _)| header.generation == self.generation))
    }

    /// Checks, after the last frame, that no acknowledged batch is missing.
    ///
    /// A batch is written after the one before is durable. So a valid frame further on, of a later batch than the
    /// incomplete one, shows that this one was complete. An incomplete batch without a later one may have been torn by the
    /// crash, also between two of its parts.
    pub(crate) fn check_end(&mut self) -> Result<(), WalReadError> {
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.read_to_end(&mut rest)?;
        let next = self.last.map_or(0, |(batch, _)| batch + 1);
        let Generation { number, salt } = self.generation;
        let beginning = [MAGIC, number.to_le_bytes(), salt.to_le_bytes()].concat();
        for (skipped, window) in rest.windows(beginning.len()).enumerate() {
            if window != beginning {
                continue;
            }
            let found = self.frame_at(self.at + skipped as u64)?;
            if found
                .is_some_and(|(header, _)| header.batch > next || (header.batch == next && header.part == 0))
            {
                let at = self.at;
                return Err(WalReadError::Damaged(format!(
                    "the write-ahead log cannot be read from byte {at} on"
                )));
            }
        }
        Ok(())
    }
}

impl WalEntry {
    /// Takes the first entry off `bytes`. The error says what is wrong, without any content.
    fn take(bytes: &mut &[u8]) -> Result<Self, String> {
        let kind = take(bytes, 1)?[0];
        let id: [u8; 32] = take(bytes, 32)?.try_into().expect("take returns this length");
        let id = RecordId::from_bytes(id);
        match kind {
            PUT => {
                let head_length = take_length(bytes)?;
                let outcome_length = take_length(bytes)?;
                let head = take(bytes, head_length as usize)?;
                let outcome = match outcome_length {
                    NO_OUTCOME => None,
                    length => Some(take(bytes, length as usize)?),
                };
                let record =
                    codec::decode(&id, head, outcome).map_err(|unreadable| unreadable.to_string())?;
                Ok(Self::Put(Box::new(record)))
            }
            REMOVE => Ok(Self::Remove(id)),
            other => Err(format!("there is no entry of kind {other}")),
        }
    }
}

fn take_length(bytes: &mut &[u8]) -> Result<u32, String> {
    take(bytes, 4).map(|length| u32::from_le_bytes(length.try_into().expect("take returns this length")))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or("it is cut short")?;
    *bytes = rest;
    Ok(taken)
}

/// The frame at byte `at`, if it is valid and ends before `end`.
fn frame_at(
    file: &mut (impl io::Read + io::Seek),
    at: u64,
    end: u64,
) -> io::Result<Option<(FrameHeader, Vec<u8>)>> {
    let payload_at = at + FRAME_HEADER_LENGTH as u64;
    if payload_at > end {
        return Ok(None);
    }
    let mut header = [0; FRAME_HEADER_LENGTH];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut header)?;
    let Some(header) = FrameHeader::from_bytes(&header) else {
        return Ok(None);
    };
    if payload_at + u64::from(header.length) > end {
        return Ok(None);
    }
    let mut payload = vec![0; header.length as usize];
    file.read_exact(&mut payload)?;
    Ok((header.checksum == header.checksum_with(&payload)).then_some((header, payload)))
}

/// The generation of the first frame of the log at `path`; none without a valid frame.
pub(crate) fn frame_generation_at(path: &Path) -> io::Result<Option<u64>> {
    let Some(mut file) = open_existing(path)? else {
        return Ok(None);
    };
    let length = file.metadata()?.len();
    match frame_at(&mut file, FRAMES_AT, length) {
        // The file was cut in between.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        frame => Ok(frame?.map(|(header, _)| header.generation.number)),
    }
}

/// The generation in the header of the log at `path`; none without a log or a valid header.
pub(crate) fn header_generation_at(path: &Path) -> io::Result<Option<u64>> {
    open_existing(path)?.map_or(Ok(None), |mut file| header_generation(&mut file))
}

fn open_existing(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn header_generation(file: &mut (impl io::Read + io::Seek)) -> io::Result<Option<u64>> {
    let mut newest = None;
    for at in [0, GENERATION_HEADER_ROOM] {
        let mut bytes = Vec::with_capacity(GENERATION_HEADER_LENGTH);
        file.seek(SeekFrom::Start(at))?;
        io::Read::take(&mut *file, GENERATION_HEADER_LENGTH as u64).read_to_end(&mut bytes)?;
        let number = bytes.get(8..16).map(|number| u64::from_le_bytes(std::array::from_fn(|n| number[n])));
        newest = newest.max(number.filter(|number| bytes == generation_header(*number)));
    }
    Ok(newest)
}

fn generation_header(number: u64) -> [u8; GENERATION_HEADER_LENGTH] {
    let mut bytes = [0; GENERATION_HEADER_LENGTH];
    bytes[..8].copy_from_slice(&GENERATION_MAGIC);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
