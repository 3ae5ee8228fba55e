#!/usr/bin/env bash
# Makes the test inputs in the current (empty) directory. Needs ffmpeg (Debian's 5.1 is enough) and python3.
# The letters follow the kinds of fault: T timing, G geometry, C colour, B broken, I images, S content, M memory.
set -eu
F="ffmpeg -nostdin -y -v error"; T="-f lavfi -i testsrc2=s=320x240:r=30"; X="-c:v libx264 -pix_fmt yuv420p"
$F $T -t 2 $X base.mp4; $F -i base.mp4 -c copy base.mkv; $F -i base.mp4 -c copy -movflags +faststart fs.mp4
# timing
$F $T -t 2 -vf "select='not(between(n,10,29))'" -vsync vfr $X T1_vfr.mp4
$F $T -t 2 $X -bf 2 T3_nopts.h264
$F $T -t 2 -c:v mpeg4 -bf 2 -f m4v T3_nopts.m4v; $F $T -t 2 -c:v mjpeg T3_nopts.mjpeg
$F $T -t 2 $X -bf 2 T4_reordered.avi
$F -i base.mkv -c copy -output_ts_offset 100 T5_start100.mkv
$F -ss 0.5 -i base.mp4 -c copy T6_editlist.mp4
$F -i base.mkv -c copy -f matroska pipe:1 > T7_nocount.mkv
$F $T -frames:v 1 $X T8_one.mp4
for o in 2 3602 1; do $F $T -t 1 $X -output_ts_offset $o -f mpegts T9_$o.ts; done; cat T9_2.ts T9_3602.ts T9_1.ts > T9_jumps.ts
V="-vf select='not(between(n,10,29))' -vsync vfr"; $F $T -t 2 $V -f apng T10_vfr.apng
$F -f lavfi -i testsrc2=s=64x64:r=1/10:d=60 -vf "select='not(eq(n,3))'" -vsync vfr $X -output_ts_offset 100 T11_slides.mkv
# geometry
$F -f lavfi -i "color=red:s=320x240:r=30:d=1,drawbox=x=160:w=160:h=240:c=blue:t=fill" $X g.mp4
for r in 90 180 270; do $F -i g.mp4 -c copy -metadata:s:v:0 rotate=$r G1_rot$r.mp4; done
for s in 321:241 31:639 1:1 17:1; do n=${s/:/x}; $F -f lavfi -i testsrc2=s=1000x1000:r=30 -t 0.5 -vf format=rgb24,crop=$s:0:0:exact=1 -c:v ffv1 -pix_fmt yuv420p G3_$n.mkv; done
$F $T -t 1 $X -aspect 16:9 G5_aspect.mp4
$F $T -t 1 $X -f mpegts a.ts; $F -f lavfi -i testsrc2=s=640x360:r=30 -t 1 $X -output_ts_offset 2 -f mpegts b.ts; cat a.ts b.ts > G6_sizechange.ts
# colour
for m in bt709 bt601 bt2020; do for r in tv pc; do t=$m; [ $m = bt601 ] && t=smpte170m; [ $m = bt2020 ] && t=bt2020nc
  $F -f lavfi -i "color=red:s=64x64:r=30:d=0.2,drawbox=w=32:h=64:c=0x404040:t=fill" -vf "scale=out_color_matrix=$m:out_range=$r,format=yuv420p" -c:v libx264 -qp 0 -colorspace $t -color_range $r C1_${m}_$r.mp4; done; done
for p in yuv420p10le:libx265 yuv422p:libx264 yuv444p10le:libx264; do n=${p%%:*}
  $F -f lavfi -i "color=red:s=64x64:r=30:d=0.2,drawbox=w=32:h=64:c=0x404040:t=fill" -vf "scale=out_color_matrix=bt709:out_range=tv,format=$n" -c:v ${p##*:} -x265-params log-level=none:lossless=1 -qp 0 -colorspace bt709 -color_range tv C2_$n.mp4; done
$F -f lavfi -i "color=red:s=64x64:r=30:d=0.2,format=gbrp,drawbox=w=32:h=64:c=0x404040:t=fill" -c:v ffv1 -pix_fmt gbrp C2_gbrp.mkv
$F $T -t 1 -c:v ffv1 -pix_fmt gray C3_gray.mkv; $F $T -t 1 -vf format=rgba -c:v qtrle -pix_fmt argb C3_alpha.mov
$F $T -t 1 -c:v libx264 -pix_fmt yuv422p C3_422.mp4; $F $T -t 1 -c:v libx264 -pix_fmt yuv444p C3_444.mp4
$F -f lavfi -i testsrc2=s=720x576:r=50 -t 2 -vf tinterlace=interleave_top -c:v libx264 -x264opts tff=1 -pix_fmt yuv420p C4_interlaced.mp4
# broken
: > B1_zero.mp4; (yes hello || true) | head -50 > B1_text.mp4; cp B1_text.mp4 B1_text.txt; mkdir -p B1_dir.mp4; head -c 20000 base.mp4 > B1_nomoov.mp4
printf 'ffconcat version 1.0\nfile base.mp4\n' > B1_list.mp4
$F -f lavfi -i sine=d=1 -c:a aac B2_audio.m4a
$F -i base.mp4 -c copy -movflags frag_keyframe+empty_moov -frag_duration 200000 frag.mp4; $F -i base.mp4 -c:v mpeg4 base.avi
$F -f lavfi -i testsrc2=s=64x64:r=10 -t 1 I1.gif
python3 - <<'P'
for name, target in (("fs.mp4", "B3_truncated.mp4"), ("base.mkv", "B3_truncated.mkv"), ("frag.mp4", "B3_truncated_fragments.mp4"), ("base.avi", "B3_truncated.avi"), ("I1.gif", "B3_truncated.gif")):
    data = open(name, "rb").read()
    open(target, "wb").write(data[: len(data) * 6 // 10])
P
$F -f lavfi -i color=green:s=600x600 -frames:v 1 cover.png; $F -f lavfi -i sine=d=1 -i cover.png -map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic B5_cover.mp3
$F -i base.mp4 -i cover.png -map 0 -map 1 -c copy -disposition:v:1 attached_pic B5_cover.mp4; $F -i cover.png -i base.mp4 -map 0 -map 1 -c copy B5_picture_first.mkv
$F -i cover.png -i base.mp4 -map 0 -map 1 -c copy B5_picture_first.mp4
$F -i cover.png -i base.mp4 -map 0 -map 1 -c copy -disposition:v:0 default -disposition:v:1 0 B5_picture_default.mkv
$F -f lavfi -i color=red:s=64x64:r=10:d=1 $T -map 0 -map 1 -t 1 $X -disposition:v:0 0 -disposition:v:1 default B6_two.mkv
cp base.mp4 'B7 ü 日本 #1.mp4'; cp base.mp4 'B7_%d_%03d.mp4'; cp base.mp4 ./-B7.mp4; cp base.mp4 'B7:with:colons.mp4'; cp base.mp4 'file:B7.mp4'
$F -i base.mp4 -f lavfi -i sine=d=5 -c:v copy -c:a aac B8_longaudio.mkv
# images
mkdir -p seq gap 'B7 50%done'; $F -f lavfi -i testsrc2=s=64x64:r=10 -t 1 seq/f_%04d.png; cp seq/f_0001.png I1_still.png
cp I1_still.png 'I1_%d.png'; cp cover.png I1_1.png; cp I1_still.png 'I1_[a]*{b}.png'; cp seq/* 'B7 50%done'
for n in 7 9 10 13; do cp seq/f_0001.png gap/a_$n.png; done; head -c 600 seq/f_0001.png > gap/a_11.png; : > gap/a_12.png; cp seq/f_0001.png gap/a_014.png
$F -i I1_still.png -pix_fmt pal8 I2_palette.png; $F -i I1_still.png -pix_fmt gray16be I2_grey16.png; $F -i I1_still.png -pix_fmt rgba64be I2_rgba64.png
$F -i I1_still.png I2.tiff; $F -i I1_still.png I2.bmp; $F -i I1_still.png -q:v 1 I2.jpg; $F -i I1_still.png -lossless 1 I2.webp
$F -i I1.gif -c:v libwebp_anim I3_animated.webp
# content
$F -f lavfi -i color=gray:s=320x240:r=30:d=10 $X S1_static.mp4; $F -f lavfi -i color=black:s=320x240:r=30:d=2 $X S1_black.mp4; $F -f lavfi -i "color=gray:s=320x240:r=30:d=2,noise=alls=100:allf=t" $X S1_noise.mp4
$F $T -f lavfi -i "mandelbrot=s=320x240:r=30" -filter_complex "[0]trim=duration=2,setsar=1[a];[1]trim=duration=2,setsar=1[b];[a][b]concat=n=2" $X S2_cut60.mp4
$F $T -t 6 -vf "fade=out:st=1:d=1,fade=in:st=4:d=1:enable='gte(t,3)'" $X S4_fade.mp4
# memory
for d in 4 40; do $F -f lavfi -i testsrc2=s=854x480:r=30 -t $d $X -preset ultrafast M1_$d.mp4; done
